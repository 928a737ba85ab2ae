import { buildPages } from '../../scripts/build-pages.ts' with { type: 'macro' }

/** Builds the pages when this module is loaded: at compile time for the executable, at the first request when run
 *  from source. */
export const { html, assets } = buildPages()
