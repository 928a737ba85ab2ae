import { version as released } from '../package.json' with { type: 'json' }

declare const HOSTLINE_COMMIT: string | undefined // defined by scripts/build.ts

export const version = released

/** The version with the commit of the executable, such as `0.2.0+1a2b3c4`; without it when run from the sources. */
export const build =
  typeof HOSTLINE_COMMIT === 'undefined' ? version : `${version}+${HOSTLINE_COMMIT}`
