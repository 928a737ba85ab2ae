import { clientScript, clientTypes, stateScript } from '../../scripts/build-client.ts' with {
  type: 'macro',
}

/** Builds the client when this module is loaded: at compile time for the executable, at the first request when run
 *  from source. */
export const script = clientScript()
export const state = stateScript()
export const types = clientTypes()
