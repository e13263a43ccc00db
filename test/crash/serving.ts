import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cliCommand, root } from '../../scripts/runtime.js';
import { childEnv } from '../support/network-guard-env.ts';

/** URLs without a final slash. */
export interface Origins {
  readonly gateway: string;
  readonly management: string;
}

/** Characters of its complaints that are kept. */
const COMPLAINTS = 20_000;

/** A gateway's process, from its start on. */
export class Serving {
  readonly #child: ChildProcess;
  /** Resolves when the process has ended, by itself or not. */
  readonly ended: Promise<unknown>;
  #said = '';
  #complained = '';
  #origins: Origins | undefined;

  /**
   * Starts `portcullis serve`, without the launcher, so that a signal reaches the gateway itself.
   * @param hear gets everything that the process writes to its two outputs
   */
  constructor(env: Readonly<Record<string, string>>, hear: (text: string) => void = () => undefined) {
    this.#child = spawn(process.execPath, [...cliCommand.args, 'serve'], {
      env: childEnv({ ...cliCommand.env, ...env }),
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.ended = once(this.#child, 'close');
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      // A log of hours must not be kept.
      if (this.#origins === undefined) this.#said += text;
      hear(text);
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complained = (this.#complained + text).slice(-COMPLAINTS);
      hear(text);
    });
  }

  /** Of the process, while it runs. */
  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('the gateway was not started');
    return pid;
  }

  /** The last that it has written to its error output. */
  get complaints(): string {
    return this.#complained;
  }

  /** Where the gateway listens, once it does. */
  async origin(): Promise<string> {
    return (await this.origins()).gateway;
  }

  /** Where both listeners are, once they are. */
  async origins(): Promise<Origins> {
    while (this.#origins === undefined) {
      const [, gateway, management] = /gateway {5}(\S+)[\s\S]*management {2}(\S+)\n/.exec(this.#said) ?? [];
      if (gateway !== undefined && management !== undefined) this.#origins = { gateway, management };
      else await this.#saysMore();
    }
    return this.#origins;
  }

  async #saysMore(): Promise<void> {
    const { stdout } = this.#child;
    const end = await Promise.race([
      stdout === null ? this.ended : once(stdout, 'data'),
      this.ended.then(() => 'ended'),
    ]);
    if (end === 'ended') throw new Error(`the gateway did not start: ${this.#said}${this.#complained}`);
  }

  /** Kills it, and waits until it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
