// `npm run soak`: kills the server again and again under writers and an informer. See bench/README.md.
import { runCompiled } from '../bench/compile.mjs'
import { ensureInstalled, requireNode } from './install.mjs'

requireNode()
ensureInstalled()
runCompiled('soak/main.js', process.argv.slice(2))
