import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { findNode } from '../support/node-versions.ts'
import { pathOrReason } from '../support/peers.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { default: string } | string>
}
const subpaths = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'string'
    ? []
    : [{ name, specifier: join('sallyport', name), entry: target.default }],
)
const nodes = [20, 22, 24].map((major) => ({ major, node: pathOrReason(findNode(major)) }))

beforeAll(() => {
  const build = "import('./scripts/build.mjs').then((module) => module.ensureBuilt())"
  execFileSync(process.execPath, ['-e', build], { cwd: root, stdio: 'pipe' })
}, 60_000)

/** What a file names in its imports: at once, and only when something is asked for. */
interface Imports {
  readonly atOnce: readonly string[]
  readonly lazily: readonly string[]
}

function importsOf(file: string): Imports {
  const text = readFileSync(file, 'utf8')
  const named = (pattern: RegExp): string[] =>
    [...text.matchAll(pattern)].map(([, name = '']) => name)
  return {
    atOnce: named(/^(?:import |(?:import|export)\b[^;'"]*? from )'([^']+)'/gm),
    lazily: named(/\bimport\('([^']+)'\)/g),
  }
}

/** Every module that loading a file loads, or may load: files of ours as paths, others by name. */
function graphOf(entry: string, which: (imports: Imports) => readonly string[]): string[] {
  const seen = new Set<string>()
  const visit = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    for (const name of which(importsOf(file))) {
      if (name.startsWith('.')) visit(join(dirname(file), name))
      else seen.add(name)
    }
  }
  visit(join(root, entry))
  return [...seen]
}

const isOurs = (module: string): boolean => module.startsWith(root)
const foreign = (modules: readonly string[]): string[] =>
  modules.filter((module) => !isOurs(module) && !module.startsWith('node:'))

/** What everybody may hold, and what only some need besides: of rooms that the server has too, the named files. */
const allowed = [
  'core/',
  'kubeconfig/',
  'credentials/',
  'client/',
  'http/fetch/',
  'http/fetch-document.js',
  'http/address-rules.js',
  'http/special-addresses.js',
  'http/headers.js',
]
const relyingParty = [
  'jose/',
  'issuer/relying-party/',
  'issuer/tokens/claims.js',
  'issuer/limits.js',
]
const allowedBesides: Readonly<Record<string, readonly string[]>> = {
  './guard': ['addon/guard/', 'addon/token/', 'jose/', 'http/', 'pki/'],
  './discovery': [
    'bootstrap/discovery/',
    'bootstrap/join/',
    'bootstrap/refresh/',
    'bootstrap/cluster-info/cluster-info.js',
    'bootstrap/tokens/signature.js',
    'bootstrap/tokens/bootstrap-token.js',
    'jose/',
    'pki/',
  ],
  './relying-party': relyingParty,
  './testing': ['testing/', 'jose/', 'issuer/documents/', 'pki/'],
}
const foreignBesides: Readonly<Record<string, readonly string[]>> = {
  './testing': ['@peculiar/x509', 'reflect-metadata'],
}

describe.each(subpaths)('$specifier', ({ name, specifier, entry }) => {
  for (const { major, node } of nodes) {
    test.skipIf(!node)(
      `loads by import and by require on Node.js ${major} [GND-R10, CRED-I7]`,
      () => {
        const load = (code: string) =>
          spawnSync(node ?? '', ['--no-warnings', '-e', code], { cwd: root, encoding: 'utf8' })
        const required = load(`console.log(Object.keys(require('${specifier}')).length > 0)`)
        expect([required.stderr, required.stdout]).toEqual(['', 'true\n'])
        const imported = load(
          `import('${specifier}').then((all) => console.log(Object.keys(all).length > 0))`,
        )
        expect([imported.stderr, imported.stdout]).toEqual(['', 'true\n'])
      },
    )
  }

  test('holds no room of the server, not even for later [GND-R10, CRED-I6]', () => {
    const files = graphOf(entry, ({ atOnce, lazily }) => [...atOnce, ...lazily]).filter(isOurs)
    const places = [...allowed, ...(allowedBesides[name] ?? [])]
    const held = files.map((file) => relative(join(root, 'dist'), file))
    expect(held.filter((file) => !places.some((place) => file.startsWith(place)))).toEqual([])
  })

  test('loads nothing but Node.js itself, and later only yaml [GND-R10, CRED-I6]', () => {
    expect(foreign(graphOf(entry, ({ atOnce }) => atOnce))).toEqual([])
    const all = graphOf(entry, ({ atOnce, lazily }) => [...atOnce, ...lazily])
    const known = ['yaml', ...(foreignBesides[name] ?? [])]
    expect(foreign(all).filter((module) => !known.includes(module))).toEqual([])
  })
})
