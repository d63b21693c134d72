// `npm run bench`: measures Sallyport beside kube-apiserver on etcd. See bench/README.md.
import { runCompiled } from '../bench/compile.mjs'
import { ensureInstalled, requireNode } from './install.mjs'

requireNode()
ensureInstalled()
runCompiled('api/main.js', process.argv.slice(2))
