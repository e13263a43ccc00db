import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export type AssetName = 'style.css' | 'page.js';

interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
  readonly digest: string;
}

function readAsset(name: AssetName, type: string): Asset {
  const bytes = readFileSync(new URL(`assets/${name}`, import.meta.url));
  return { type, bytes, digest: hash('sha256', bytes, 'base64url').slice(0, 16) };
}

export const ASSETS: Readonly<Record<AssetName, Asset>> = {
  'style.css': readAsset('style.css', 'text/css'),
  'page.js': readAsset('page.js', 'text/javascript'),
};

/** Changes with the content, which may be kept for ever under it. */
export const assetUrl = (name: AssetName): string => `/oauth/interaction/assets/${name}?${ASSETS[name].digest}`;
