import { ASSETS, type AssetName } from '../../pages/assets.ts';
import type { Pages } from '../../pages/pages.ts';
import type { AppMiddleware } from '../../state.ts';

const asset =
  (name: AssetName): AppMiddleware =>
  (ctx) => {
    const { type, bytes } = ASSETS[name];
    // Its address changes with it.
    ctx.set({ 'cache-control': 'public, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' });
    ctx.type = type;
    ctx.body = bytes;
  };

export function assetRoutes(pages: Pages): void {
  pages.get('/oauth/interaction/assets/style.css', asset('style.css'));
  pages.get('/oauth/interaction/assets/page.js', asset('page.js'));
}
