import { ensureBuilt } from '../scripts/build.mjs'

/** Worker threads run compiled code, in tests too: that of the sources as they are. */
export const setup = () => ensureBuilt()
