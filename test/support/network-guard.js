// Keeps a process, its workers and (by NODE_OPTIONS) its children on this machine: loaded with `--import`, before anything
// else. What tries to leave gets an error, and a line in the file that network-guard-setup.ts reads after each test.
// JavaScript, for every process that a test starts loads it: taking types off would cost each a third of a second.
import dgram from 'node:dgram';
import dns from 'node:dns';
import { appendFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net, { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
loopback.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

/** True for an address of this machine that nothing outside can have, and for the one name that stands for it. */
function isHere(host) {
  const family = isIP(host);
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** The error for what wanted to leave, after it has been written down. */
function denied(attempt) {
  const file = process.env.NETWORK_GUARD_LOG;
  if (file !== undefined) appendFileSync(file, `${attempt}\n`);
  return Object.assign(new Error(`network guard: ${attempt}`), { code: 'ENETUNREACH' });
}

/** Replaces a function by one that decides, with the arguments and a way to go on, what comes of a call. */
function intercept(owner, name, decide) {
  const original = owner[name];
  if (typeof original !== 'function') throw new Error(`there is no ${name} to guard`);
  owner[name] = function (...args) {
    return decide({ self: this, args, proceed: (changed = args) => Reflect.apply(original, this, changed) });
  };
}

/** A test's own look-up, whose answers must lie here too. */
function guardedLookup(lookup) {
  if (lookup === undefined) return undefined;
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found];
      const foreign = addresses.find((address) => isIP(address) !== 0 && !isHere(address));
      if (error || foreign === undefined) callback(error, found, family);
      else callback(denied(`connect to ${foreign}, found for ${hostname}`));
    });
}

/** What `connect` is given: options, or a port and a host, or a path; or, from inside Node, a list that begins with options. */
function targetOf([first, second]) {
  if (Array.isArray(first)) return targetOf(first);
  if (typeof first === 'object') return first;
  if (typeof first === 'string' && !/^\d+$/.test(first)) return { path: first };
  return { port: first, host: typeof second === 'string' ? second : 'localhost' };
}

intercept(net.Socket.prototype, 'connect', ({ self, args, proceed }) => {
  const { path, host = 'localhost', port, lookup } = targetOf(args);
  if (path || isHere(host)) return proceed();
  if (isIP(host) !== 0) return self.destroy(denied(`connect to ${host}:${port}`));
  // A name is judged when it is looked up.
  const [first, ...rest] = args;
  const judged = { host, port, lookup: guardedLookup(lookup) };
  if (Array.isArray(first)) Object.assign(first, { 0: { ...first[0], ...judged } });
  return Array.isArray(first) || typeof first !== 'object' ? proceed() : proceed([{ ...first, ...judged }, ...rest]);
});

const mayLookUp = (host) => typeof host !== 'string' || host === '' || isHere(host) || isIP(host) !== 0;

function lookUp({ args, proceed }) {
  if (mayLookUp(args[0])) return proceed();
  process.nextTick(args.at(-1), denied(`look up ${args[0]}`));
  return undefined;
}

const lookUpByPromise = ({ args, proceed }) =>
  mayLookUp(args[0]) ? proceed() : Promise.reject(denied(`look up ${args[0]}`));

intercept(dns, 'lookup', lookUp);
intercept(dns.promises, 'lookup', lookUpByPromise);

/** Whatever asks a name server, be it for a name of this machine. */
const QUERY = /^(resolve|reverse$|lookupService$)/;

for (const [owner, refuse] of [
  [dns, lookUp],
  [dns.Resolver.prototype, lookUp],
  [dns.promises, lookUpByPromise],
  [dns.promises.Resolver.prototype, lookUpByPromise],
]) {
  const names = [owner, Object.getPrototypeOf(owner)].flatMap((each) => Object.getOwnPropertyNames(each));
  for (const name of new Set(names.filter((each) => QUERY.test(each)))) {
    intercept(owner, name, ({ args: [asked, ...rest] }) => refuse({ args: [`${asked} by ${name}`, ...rest] }));
  }
}

for (const name of ['send', 'connect']) {
  intercept(dgram.Socket.prototype, name, ({ args, proceed }) => {
    const host = args.slice(1).find((each) => typeof each === 'string');
    if (host === undefined || isHere(host)) return proceed();
    throw denied(`send a datagram to ${host}`);
  });
}

syncBuiltinESMExports();
