import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const src = join(import.meta.dirname, '../src')

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.ts') && !/\.(?:test|suite|contract)\.ts$/.test(path),
)
const textOf = new Map(files.map((path) => [path, readFileSync(join(src, path), 'utf8')]))

/** Mechanisms that exist once, by what only their files may contain. YAML has a rule of the layers. */
const mechanisms: readonly (readonly [string, RegExp, RegExp])[] = [
  [
    'HTTP requests',
    /import \{[^}]*(?<!type )\b(?:request|get|Agent)\b[^}]*\} from 'node:https?'/,
    /^(?:http\/fetch-document|credentials\/transport\/[\w-]+)\.ts$/,
  ],
  [
    'retry delays',
    /\b(?:retry|pause|delay|wait)Ms \* (?:2|1\.5|factor)\b|\bpause\([^)]*Math\.random/,
    /^core\/backoff\.ts$/,
  ],
  [
    'lock files of users',
    /\.lock`/,
    /^(?:core\/file-lock|kubeconfig\/edit|credentials\/exec-plugin\/credential-cache|storage\/directory-lock)\.ts$/,
  ],
]

test.each(mechanisms)('%s have one implementation', (_name, pattern, where) => {
  const found = files.filter((path) => pattern.test(textOf.get(path) ?? ''))
  expect(found.length).toBeGreaterThan(0)
  expect(found.filter((path) => !where.test(path))).toEqual([])
})
