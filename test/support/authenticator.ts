import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();
const text = (value: string): Buffer => Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
/** Of 24 to 255 bytes. */
const bytes = (value: Buffer): Buffer => Buffer.concat([Buffer.from([0x58, value.length]), value]);

/** What a device and the browser before it do otherwise than they should. */
export interface Faults {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly withoutVerification?: boolean;
  readonly counter?: number;
}

/** A device that holds one passkey, in software: an ES256 key, attestation "none". */
export class Authenticator {
  readonly credentialId = randomBytes(32).toString('base64url');
  readonly #privateKey: KeyObject;
  readonly #publicKey: Buffer;
  readonly #origin: string;
  #counter = 0;

  constructor(origin: string) {
    this.#origin = origin;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.#privateKey = privateKey;
    // A COSE key: {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}.
    this.#publicKey = Buffer.concat([
      Buffer.from('a501020326200121', 'hex'),
      bytes(Buffer.from(x, 'base64url')),
      Buffer.from('22', 'hex'),
      bytes(Buffer.from(y, 'base64url')),
    ]);
  }

  /** What `navigator.credentials.create()` gives for these options, as JSON. */
  create(options: unknown, faults: Faults = {}): object {
    const id = Buffer.from(this.credentialId, 'base64url');
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, this.#publicKey]);
    const authData = Buffer.concat([this.#authData(0x40, faults), attested]);
    const attestationObject = Buffer.concat([
      Buffer.from([0xa3]),
      text('fmt'),
      text('none'),
      text('attStmt'),
      Buffer.from([0xa0]),
      text('authData'),
      bytes(authData),
    ]);
    return this.#credential({
      clientDataJSON: this.#clientData('webauthn.create', options, faults).toString('base64url'),
      attestationObject: attestationObject.toString('base64url'),
      transports: ['internal'],
    });
  }

  /** What `navigator.credentials.get()` gives. */
  get(options: unknown, faults: Faults = {}): object {
    this.#counter += 1;
    const authData = this.#authData(0, { counter: this.#counter, ...faults });
    const clientData = this.#clientData('webauthn.get', options, faults);
    const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), this.#privateKey);
    return this.#credential({
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: authData.toString('base64url'),
      signature: signature.toString('base64url'),
    });
  }

  #credential(response: object): object {
    const id = this.credentialId;
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} };
  }

  #authData(flags: number, { rpId, counter = 0, withoutVerification = false }: Faults): Buffer {
    const present = 0x01;
    const verified = withoutVerification ? 0 : 0x04;
    const tail = Buffer.alloc(5);
    tail.writeUInt8(flags | present | verified);
    tail.writeUInt32BE(counter, 1);
    return Buffer.concat([sha256(rpId ?? new URL(this.#origin).hostname), tail]);
  }

  #clientData(type: string, options: unknown, faults: Faults): Buffer {
    const challenge: unknown = faults.challenge ?? Reflect.get(Object(options), 'challenge');
    return Buffer.from(JSON.stringify({ type, challenge, origin: faults.origin ?? this.#origin, crossOrigin: false }));
  }
}
