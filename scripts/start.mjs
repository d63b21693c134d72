// `npm start`: installs what is missing, builds what is stale, then becomes `sallyport <arguments>` in the directory
// of the caller: npm itself runs scripts in the checkout, where no private key belongs.
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuilt } from './build.mjs'
import { ensureInstalled, requireNode, root } from './install.mjs'

requireNode()
ensureInstalled()
ensureBuilt()
const { npm_package_json: manifest, INIT_CWD: caller } = process.env
if (manifest && caller && realpathSync(manifest) === realpathSync(join(root, 'package.json')))
  process.chdir(caller)
if (process.argv[2] === 'up')
  console.error('In this checkout every `sallyport ...` is `npm run sallyport -- ...`.')
await import(pathToFileURL(join(root, 'dist', 'cli', 'main.js')).href)
