// `npm start`: installs what is missing, builds what is stale, then becomes `sallyport <arguments>`.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuilt } from './build.mjs'
import { ensureInstalled, requireNode, root } from './install.mjs'

requireNode()
ensureInstalled()
ensureBuilt()
if (process.argv[2] === 'up')
  console.error('In this checkout every `sallyport ...` is `npm run sallyport -- ...`.')
await import(pathToFileURL(join(root, 'dist', 'cli', 'main.js')).href)
