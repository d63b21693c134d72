import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** How many files a reader opens to follow one request through the server, from its socket to the response. */
const maxFiles: Readonly<Record<string, number>> = {
  'GET configmap': 39,
  'GET through the service proxy': 62,
}

/** Composition hands over objects: its own code does not run for a request. */
const startUp = /^apiserver\/(?:startup|features|options)\/|^apiserver\/(?:api-server|feature)\.ts$/

test('a warm request runs code of few files, and none of the start-up', {
  timeout: 120_000,
}, async () => {
  const script = join(root, 'scripts', 'request-files.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--json'], { cwd: root })
  const results: Record<string, Record<string, string[]>> = JSON.parse(stdout)
  const counts = Object.entries(results).map(([name, files]) => [name, Object.keys(files).length])
  expect(Object.keys(results)).toEqual(Object.keys(maxFiles))
  for (const [name, count] of counts)
    expect(count, `${name}: see \`npm run request-files\``).toBeLessThanOrEqual(
      maxFiles[String(name)] ?? 0,
    )
  const files = Object.values(results).flatMap((each) => Object.keys(each))
  expect(files.filter((file) => startUp.test(file))).toEqual([])
})
