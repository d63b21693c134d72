import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { default: string } | string>
}
const subpaths = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'string'
    ? []
    : [{ name, specifier: join('sallyport', name), entry: target.default }],
)

beforeAll(() => {
  const build = "import('./scripts/build.mjs').then((module) => module.ensureBuilt())"
  execFileSync(process.execPath, ['-e', build], { cwd: root, stdio: 'pipe' })
}, 60_000)

/** Every file of ours that loading `entry` loads. */
function graphOf(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen
  seen.add(entry)
  const text = readFileSync(entry, 'utf8')
  // Static imports only: what is imported lazily is not paid for.
  for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^;]*?from '([^']+)'/gm)) {
    if (specifier.startsWith('.')) graphOf(join(dirname(entry), specifier), seen)
    else seen.add(specifier)
  }
  return seen
}

describe.each(subpaths)('$specifier', ({ specifier, entry }) => {
  test('loads by import and by require [GND-R10]', () => {
    const load = (code: string) =>
      spawnSync(process.execPath, ['--no-warnings', '-e', code], { cwd: root, encoding: 'utf8' })
    const required = load(`console.log(Object.keys(require('${specifier}')).length > 0)`)
    expect(required.stderr).toBe('')
    expect(required.stdout).toBe('true\n')
    const imported = load(
      `import('${specifier}').then((all) => console.log(Object.keys(all).length > 0))`,
    )
    expect(imported.stderr).toBe('')
    expect(imported.stdout).toBe('true\n')
  })

  test('does not drag in the server or its libraries [GND-R10]', () => {
    const files = [...graphOf(join(root, entry))]
    const rooms = new Set(
      files
        .filter((file) => file.startsWith(root))
        .map((file) => relative(join(root, 'dist'), file).split('/')[0]),
    )
    for (const room of ['server', 'api', 'storage', 'authn', 'authz', 'cli'])
      expect([...rooms]).not.toContain(room)
    expect(files.filter((file) => /^(@peculiar|reflect-metadata|yaml)/.test(file))).toEqual([])
  })
})
