import { setTimeout as sleep } from 'node:timers/promises';
import type { Config, PolicyBundleConfig } from '../../config/config.ts';
import { ConfigError } from '../../config/variables.ts';
import { type Clock, formatTime } from '../../domain/time.ts';
import type { BundleEvent, BundleState, KnownBundle } from '../../generated/types.ts';
import { BundleRefused } from '../../policy/archive/read-archive.ts';
import type { Trust } from '../../policy/archive/signature.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { createPdp, type PolicyInForce, type PolicyStatus } from '../../policy/pdp.ts';
import { passSelfTest } from '../../policy/self-test.ts';
import {
  archiveDigest,
  bundleStateVersion,
  eventOf,
  keepArchive,
  olderFault,
  readBundleState,
  readKeptArchive,
  setBundleAside,
  withActive,
  writeBundleState,
} from '../../store/bundles/bundle-files.ts';
import type { Telemetry } from '../../telemetry/telemetry.ts';
import { type BundleSource, fileSource, readTrust, serverSource } from './bundle-source.ts';
import { tryBundle } from './try-bundle.ts';

/** Chooses the policy that serves, at the start and while the gateway is running. */
export interface PolicyKeeper {
  inForce(): PolicyInForce;
  /** The outcome of the last bundles that were offered, the latest first. */
  history(): readonly BundleEvent[];
  /** From now on looks for other bundles, and tells of each that has passed its trial, and of each that is refused. */
  follow(tell: (next: PolicyInForce) => void): void;
  close(): Promise<void>;
}

export interface PolicyKeeperDeps {
  readonly config: Pick<Config, 'dataDir' | 'policyBundle' | 'bundleTrust'>;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'info' | 'warn' | 'failure' | 'policyActivated' | 'policyRefused'>;
}

/** Interval of the check whether another process has gone back to the bundle before. */
const STATE_MS = 1000;
/** Least time between two looks at a source. */
const LEAST_MS = 1000;

/**
 * @throws ConfigError when `POLICY_BUNDLE` names none that may serve and none that has served is kept: a policy that is asked for and
 * cannot be had is no reason to serve with another
 */
export async function createPolicyKeeper(deps: PolicyKeeperDeps): Promise<PolicyKeeper> {
  const { policyBundle } = deps.config;
  if (policyBundle === undefined) return keeperOfInstallation(deps);
  const keeper = new Follower(deps, policyBundle);
  try {
    await keeper.begin();
    return keeper;
  } catch (error) {
    await keeper.close();
    throw error instanceof BundleRefused ? new ConfigError(`POLICY_BUNDLE: ${error.message}`) : error;
  }
}

function keeperOfInstallation({ clock, config }: PolicyKeeperDeps): PolicyKeeper {
  // Our own policy needs no trial in a process: nothing is served yet, and a start that waits for one takes twice as long.
  const bundle = readBundle();
  const pdp = createPdp(bundle);
  passSelfTest(pdp);
  pdp.close();
  const { digest } = bundle;
  const nothing = { revision: undefined, source: undefined, checkedAt: undefined, refusal: undefined };
  const status: PolicyStatus = { digest, activatedAt: clock.now(), ...nothing };
  return {
    inForce: () => ({ bundle, status }),
    history: () => [],
    follow: () => setBundleAside(config.dataDir, formatTime(clock.now())),
    close: async () => {},
  };
}

/** In force: the bundle, and the archive that it is from. */
interface Held {
  readonly bundle: PolicyBundle;
  readonly known: KnownBundle;
}

/** Keeps to the bundles of a source. One thing after another: a look and a rollback never meet. */
class Follower implements PolicyKeeper {
  readonly #deps: PolicyKeeperDeps;
  readonly #config: PolicyBundleConfig;
  readonly #trust: Trust;
  readonly #source: BundleSource;
  readonly #closing = new AbortController();
  #held: Held | undefined;
  #stateVersion: string;
  #checkedAt: number | undefined;
  /** Why the archive that the source had last is not in force. */
  #refusal: PolicyStatus['refusal'];
  #unreachable: PolicyStatus['refusal'];
  /** The archive that was refused last, which is not tried again. */
  #refused: { readonly archive: string; readonly why: PolicyStatus['refusal'] } | undefined;
  #tell: (next: PolicyInForce) => void = () => {};
  #turn: Promise<void> = Promise.resolve();
  #loops: readonly Promise<void>[] = [];

  constructor(deps: PolicyKeeperDeps, config: PolicyBundleConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#trust = readTrust(deps.config.bundleTrust);
    const { location, token, longPollSeconds } = config;
    this.#source = location.includes('://')
      ? serverSource({ url: location, token, longPollSeconds })
      : fileSource(location);
    this.#stateVersion = bundleStateVersion(deps.config.dataDir);
  }

  /** A file is read at once; a server need not be there, once a bundle has been in force. @throws BundleRefused */
  async begin(): Promise<void> {
    const isFile = !this.#config.location.includes('://');
    if (!isFile && (await this.#restored())) return;
    try {
      const archive = await this.#source.look(this.#closing.signal);
      if (archive !== undefined) await this.#consider(archive);
    } catch (error) {
      this.#note(error);
    }
    if (this.#held === undefined && !(await this.#restored())) {
      const { code = 'unreachable', message = 'There is no bundle.' } = this.#fault() ?? {};
      throw new BundleRefused(code, message);
    }
  }

  inForce(): PolicyInForce {
    const { bundle, known } = this.#current();
    const status: PolicyStatus = {
      digest: bundle.digest,
      revision: bundle.revision,
      source: known.source,
      activatedAt: Date.parse(known.activatedAt),
      checkedAt: this.#checkedAt,
      refusal: this.#fault(),
    };
    return { bundle, status };
  }

  readonly history = (): readonly BundleEvent[] => readBundleState(this.#deps.config.dataDir)?.history ?? [];

  follow(tell: (next: PolicyInForce) => void): void {
    this.#tell = tell;
    this.#record();
    this.#loops = [this.#lookForOthers(), this.#lookForRollbacks()];
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#loops);
    await this.#source.close();
  }

  #current(): Held {
    if (this.#held === undefined) throw new Error('No bundle is in force.');
    return this.#held;
  }

  async #lookForOthers(): Promise<void> {
    let failures = 0;
    while (await this.#slept(delayOf(failures, this.#config.pollMs, this.#source.waits()))) {
      try {
        const archive = await this.#source.look(this.#closing.signal);
        failures = 0;
        const before = this.#fault();
        await this.#inTurn(() => (archive === undefined ? this.#unchanged() : this.#consider(archive)));
        this.#record();
        if (this.#fault() !== before) this.#tell(this.inForce());
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        failures += 1;
        this.#note(error);
      }
    }
  }

  async #lookForRollbacks(): Promise<void> {
    const { dataDir } = this.#deps.config;
    while (await this.#slept(STATE_MS)) {
      if (bundleStateVersion(dataDir) === this.#stateVersion) continue;
      await this.#inTurn(() => this.#followState()).catch((error) => this.#note(error));
    }
  }

  #inTurn(work: () => Promise<void> | void): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #slept(ms: number): Promise<boolean> {
    await sleep(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {});
    return !this.#closing.signal.aborted;
  }

  #unchanged(): void {
    this.#checkedAt = this.#deps.clock.now();
    this.#unreachable = undefined;
  }

  readonly #fault = (): PolicyStatus['refusal'] => this.#unreachable ?? this.#refusal;

  /** Puts an archive in force that passes its trial; one that does not is recorded. */
  async #consider(archive: Uint8Array): Promise<void> {
    this.#unchanged();
    const { clock, config } = this.#deps;
    const digest = archiveDigest(archive);
    const state = readBundleState(config.dataDir);
    this.#refusal = digest === this.#refused?.archive ? this.#refused.why : undefined;
    const isDone = digest === state?.held || digest === this.#held?.known.archive;
    if (this.#refusal !== undefined || isDone) return;
    const { location: source } = this.#config;
    try {
      const bundle = await this.#tried(archive);
      const isKnown = state?.active.archive === digest;
      const known = isKnown
        ? state.active
        : {
            archive: digest,
            digest: bundle.digest,
            revision: bundle.revision ?? null,
            source,
            activatedAt: formatTime(clock.now()),
            ...(bundle.signedAs === undefined ? {} : { signedAs: bundle.signedAs }),
          };
      if (!isKnown) {
        refuseOlder(readBundleState(config.dataDir), bundle);
        keepArchive(config.dataDir, archive);
        this.#write(withActive(readBundleState(config.dataDir), known));
      }
      this.#putInForce({ bundle, known });
    } catch (error) {
      if (!(error instanceof BundleRefused)) throw error;
      // A machine that is busy may have more time later.
      if (error.code === 'time_limit') this.#source.forget();
      const event = eventOf('refused', formatTime(clock.now()), { archive: digest, revision: null, source });
      this.#note(error, { ...event, code: error.code, message: error.message });
      if (error.code !== 'time_limit') this.#refused = { archive: digest, why: this.#refusal };
    }
  }

  /** The bundle that was in force last; false: there is none, or it may serve no more. */
  async #restored(): Promise<boolean> {
    const { dataDir } = this.#deps.config;
    const state = readBundleState(dataDir);
    if (state === undefined) return false;
    try {
      this.#putInForce(await this.#kept(state.active));
      return true;
    } catch (error) {
      this.#note(error);
      return false;
    }
  }

  /** Another process has written the state. */
  async #followState(): Promise<void> {
    const { dataDir } = this.#deps.config;
    this.#stateVersion = bundleStateVersion(dataDir);
    const state = readBundleState(dataDir);
    const { known } = this.#current();
    if (state === undefined || state.active.archive === known.archive) return;
    // A bundle that was too old may no longer be.
    if (this.#refused?.why?.code === 'rollback') {
      this.#refused = undefined;
      this.#source.forget();
    }
    try {
      this.#putInForce(await this.#kept(state.active));
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#write({ ...state, active: known, previous: state.active });
      this.#note(error);
    }
  }

  async #kept(known: KnownBundle): Promise<Held> {
    const archive = readKeptArchive(this.#deps.config.dataDir, known.archive);
    return { bundle: await this.#tried(archive), known };
  }

  #tried(archive: Uint8Array): Promise<PolicyBundle> {
    return tryBundle({ archive, trust: this.#trust }, { signal: this.#closing.signal });
  }

  #putInForce(held: Held): void {
    const { telemetry } = this.#deps;
    this.#held = held;
    this.#tell(this.inForce());
    telemetry.policyActivated();
    const { digest, revision, signedAs } = held.bundle;
    if (signedAs?.number === 0) {
      const why =
        'the signature of the policy bundle has no number: its source can offer older ones that were not in force here';
      telemetry.warn(why, { digest, revision });
    }
    telemetry.info('a policy bundle is in force', { digest, revision, source: held.known.source });
  }

  /** Keeps for commands what is known of the source, and that a bundle is in force. */
  #record(event?: BundleEvent): void {
    const state = readBundleState(this.#deps.config.dataDir);
    if (state === undefined) return;
    const { setAside, refusal: before, history, ...rest } = state;
    const fault = this.#fault();
    const isKept = setAside === undefined && before?.code === fault?.code && before?.message === fault?.message;
    if (isKept && event === undefined) return;
    this.#write({
      ...rest,
      ...(fault === undefined ? {} : { refusal: { ...fault, at: formatTime(fault.at) } }),
      history: event === undefined ? history : [event, ...history],
    });
  }

  #write(state: BundleState): void {
    const { dataDir } = this.#deps.config;
    const isFollowed = bundleStateVersion(dataDir) === this.#stateVersion;
    writeBundleState(dataDir, state);
    // A rollback that has not been followed yet is still to be.
    if (isFollowed) this.#stateVersion = bundleStateVersion(dataDir);
  }

  /** @param event of an archive that was refused */
  #note(error: unknown, event?: BundleEvent): void {
    if (this.#closing.signal.aborted) return;
    const { telemetry, clock } = this.#deps;
    if (!(error instanceof BundleRefused)) {
      telemetry.failure('', error);
      return;
    }
    const { code, message } = error;
    const refusal = { code, message, at: clock.now() };
    if (code === 'unreachable') this.#unreachable = refusal;
    else this.#refusal = refusal;
    this.#record(event);
    telemetry.policyRefused(code);
    telemetry.warn('a policy bundle is refused', { code, reason: message, source: this.#config.location });
    if (this.#held !== undefined) this.#tell(this.inForce());
  }
}

/** @throws BundleRefused `rollback` for a signed bundle that is older than one that was in force */
function refuseOlder(state: BundleState | undefined, { signedAs }: PolicyBundle): void {
  const fault = signedAs === undefined ? undefined : olderFault(state, signedAs);
  if (fault === undefined) return;
  throw new BundleRefused('rollback', `${fault} Only \`portcullis policy bundle rollback\` goes back.`);
}

/** Spread, so that many gateways do not ask at once. */
function delayOf(failures: number, pollMs: number, waits: boolean): number {
  const spread = 0.8 + 0.4 * Math.random();
  if (failures > 0) return spread * Math.min(pollMs, LEAST_MS * 2 ** (failures - 1));
  return waits ? LEAST_MS : spread * pollMs;
}
