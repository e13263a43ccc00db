// Every secret of the run, and who may see it.

const LOOKS_SECRET = /(?:pcl[mi]?_|sk_|sk-fuzz-)[A-Za-z0-9-]{8,}/g;

export interface FoundSecret {
  readonly owner: string;
  readonly at: number;
}

/** Where a secret may appear: with this owner alone. */
export class Secrets {
  readonly #owners = new Map<string, string>();

  /** @param owner an upstream that is sent it, or words for whose it is */
  add(secret: string, owner: string): void {
    this.#owners.set(secret, owner);
  }

  /** Whose secret a text holds, and where, if any but those that may be there. */
  foreignIn(text: string, mayBe: (owner: string, secret: string) => boolean = () => false): FoundSecret | undefined {
    for (const { 0: found, index } of text.matchAll(LOOKS_SECRET)) {
      const owner = this.#owners.get(found);
      if (owner !== undefined && !mayBe(owner, found)) return { owner, at: index };
    }
    return undefined;
  }
}
