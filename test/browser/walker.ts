import path from 'node:path';
import axe from 'axe-core';
import type { Browser, BrowserContext, ConsoleMessage, Page, Response } from 'playwright-core';
import { expect } from 'vitest';
import type { Browser as SignedIn } from '../support/browser.ts';

const WIDTHS = { wide: 1280, narrow: 360 } as const;
const SCHEMES = ['light', 'dark'] as const;

/** What axe finds that keeps people out. */
const GRAVE: readonly unknown[] = ['serious', 'critical'];

/** A person at a browser. Whatever a page does wrong is noted on the way, and fails the walk when the person next looks. */
export class Walker {
  readonly page: Page;
  readonly #origin: string;
  readonly #context: BrowserContext;
  readonly #faults: string[] = [];
  #status = 0;

  /** @param browser in which they have no cookies yet */
  static async start(browser: Browser, origin: string): Promise<Walker> {
    const context = await browser.newContext({ baseURL: origin });
    return new Walker(origin, context, await context.newPage());
  }

  private constructor(origin: string, context: BrowserContext, page: Page) {
    this.#origin = origin;
    this.#context = context;
    this.page = page;
    page.on('pageerror', (error) => this.#faults.push(`an exception: ${error.message}`));
    page.on('console', (message) => this.#heard(message));
    page.on('requestfailed', (request) =>
      this.#faults.push(`no answer: ${request.url()} ${request.failure()?.errorText}`),
    );
    page.on('response', (response) => this.#answered(response));
  }

  /** Chromium also writes to the console that the document itself has an error status: `see` gets the right one. */
  #heard(message: ConsoleMessage): void {
    const isWrong = message.type() === 'error' || message.type() === 'warning';
    const isOwnStatus =
      message.text().startsWith('Failed to load resource') && message.location().url === this.page.url();
    if (isWrong && !isOwnStatus) this.#faults.push(`console: ${message.text()} (${message.location().url})`);
  }

  #answered(response: Response): void {
    if (response.request().isNavigationRequest()) this.#status = response.status();
    else if (response.status() >= 400) this.#faults.push(`${response.status()}: ${response.url()}`);
  }

  /** Goes on as the one who is signed in elsewhere. */
  async takeCookies({ cookies }: SignedIn): Promise<void> {
    const url = this.#origin;
    await this.#context.addCookies([...cookies].map(([name, value]) => ({ name, value, url })));
  }

  async goto(place: string): Promise<void> {
    await this.page.goto(place);
  }

  async fill(fields: Readonly<Record<string, string>>): Promise<void> {
    for (const [label, value] of Object.entries(fields)) await this.page.getByLabel(label, { exact: true }).fill(value);
  }

  async choose(fields: Readonly<Record<string, string>>): Promise<void> {
    for (const [label, option] of Object.entries(fields))
      await this.page.getByLabel(label, { exact: true }).selectOption(option);
  }

  /** Presses a button that leads to another page. */
  async press(name: string): Promise<void> {
    await Promise.all([this.page.waitForEvent('load'), this.page.getByRole('button', { name, exact: true }).click()]);
  }

  /** The texts of the page's main part. */
  text(): Promise<string> {
    return this.page.getByRole('main').innerText();
  }

  /**
   * Looks at the page that is shown: its heading and status, in light and dark, wide and narrow. Nothing may be wrong with it.
   * @param name of its pictures
   */
  async see(name: string, heading: string, status = 200): Promise<void> {
    expect([await this.page.getByRole('heading', { level: 1 }).innerText(), this.#status]).toEqual([heading, status]);
    for (const colorScheme of SCHEMES) {
      await this.page.emulateMedia({ colorScheme });
      for (const [size, width] of Object.entries(WIDTHS)) {
        await this.page.setViewportSize({ width, height: 900 });
        const shown = `${name}, ${colorScheme}, ${size}`;
        this.#faults.push(...(await this.#pageFaults()).map((fault) => `${shown}: ${fault}`));
        await this.#keep(`${name}-${colorScheme}-${size}`);
      }
    }
    expect(this.#faults).toEqual([]);
  }

  async #pageFaults(): Promise<string[]> {
    const isScrolled = await this.page.evaluate<boolean>(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth',
    );
    const squashed = await this.page.evaluate<string[]>(
      '[...document.querySelectorAll("button")].filter((b) => b.offsetWidth < b.offsetHeight).map((b) => b.outerHTML)',
    );
    // Evaluated by the debugger, as the page's own policy forbids scripts of others.
    await this.page.evaluate(axe.source);
    const { violations } = await this.page.evaluate<axe.AxeResults>('axe.run({ preload: false })');
    return [
      ...(isScrolled ? ['it scrolls sideways'] : []),
      ...squashed.map((html) => `a button is squashed: ${html}`),
      ...violations
        .filter(({ impact }) => GRAVE.includes(impact))
        .map(({ id, nodes }) => `axe ${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    ];
  }

  async #keep(name: string): Promise<void> {
    const { SCREENSHOTS: folder } = process.env;
    if (folder !== undefined) await this.page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
  }

  close(): Promise<void> {
    return this.#context.close();
  }
}
