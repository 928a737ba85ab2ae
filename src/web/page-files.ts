import { buildPages } from '../../scripts/build-pages.ts' with { type: 'macro' }

/** The pages, built when this file is: with the executable, or when the sources are first asked for one. */
export const { html, assets } = buildPages()
