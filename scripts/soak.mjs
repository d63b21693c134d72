// `npm run soak`: kills the server again and again under writers and an informer; `-- tunnel`: a million dials. See bench/README.md.
import { runCompiled } from '../bench/compile.mjs'
import { ensureInstalled, requireNode } from './install.mjs'

requireNode()
ensureInstalled()
const [which, ...rest] = process.argv.slice(2)
if (which === 'tunnel') runCompiled('soak/tunnel.js', rest)
else runCompiled('soak/main.js', process.argv.slice(2))
