import { clientPackage } from '../../scripts/build-client.ts' with { type: 'macro' }

/** Packed when this module is loaded: at compile time for the executable, at the first request when run from source. */
export const archive = clientPackage()
