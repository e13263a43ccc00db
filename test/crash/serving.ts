import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cliCommand, root } from '../../scripts/runtime.js';
import { childEnv } from '../support/network-guard-env.ts';

/** A gateway's process, from its start on. */
export class Serving {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #said = '';
  #complained = '';

  /** Starts `portcullis serve`, without the launcher, so that a signal reaches the one that serves. */
  constructor(env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [...cliCommand.args, 'serve'], {
      env: childEnv({ ...cliCommand.env, ...env }),
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#ended = once(this.#child, 'close');
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complained += text;
    });
  }

  /** Where the gateway listens, once it does. */
  async origin(): Promise<string> {
    for (;;) {
      const [, origin] = /gateway {5}(\S+)[\s\S]*management {2}\S+\n/.exec(this.#said) ?? [];
      if (origin !== undefined) return origin;
      const { stdout } = this.#child;
      const end = await Promise.race([
        stdout === null ? this.#ended : once(stdout, 'data'),
        this.#ended.then(() => 'ended'),
      ]);
      if (end === 'ended') throw new Error(`the gateway did not start: ${this.#said}${this.#complained}`);
    }
  }

  /** Kills it, and waits until it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
