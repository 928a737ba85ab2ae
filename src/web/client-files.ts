import { clientScript, clientTypes } from '../../scripts/build-client.ts' with { type: 'macro' }

/** The client, built when this file is: with the executable, or when the sources are first asked for it. */
export const script = clientScript()
export const types = clientTypes()
