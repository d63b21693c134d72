import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

// Whole tools run here; a busy machine takes its time.
vi.setConfig({ testTimeout: 120_000 })

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = (name: string) => join(root, 'node_modules', '.bin', name)

interface Cruise {
  readonly modules: readonly { readonly source: string }[]
  readonly summary: { readonly violations: readonly { readonly rule: { readonly name: string } }[] }
}

function cruise(directory: string): Cruise {
  const run = spawnSync(bin('depcruise'), ['--output-type', 'json', 'src'], {
    cwd: directory,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  })
  return JSON.parse(run.stdout) as Cruise
}

function sourcesIn(directory: string): string[] {
  return readdirSync(join(directory, 'src'), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
}

test('imports go down the rows only, and the checker saw every file [GND-R7]', () => {
  const { modules, summary } = cruise(root)
  const seen = new Set(modules.map((module) => module.source))
  expect(sourcesIn(root).filter((source) => !seen.has(source))).toEqual([])
  expect(summary.violations).toEqual([])
})

test('[SEC-R1505] one file writes to the standard error, and it redacts', () => {
  const writers = sourcesIn(root).filter((file) => {
    if (/\.(test|suite|fixture)\.ts$/.test(file)) return false
    return /process\.stderr\.write|\bconsole\./.test(readFileSync(join(root, file), 'utf8'))
  })
  expect(writers).toEqual(['src/cli/io.ts'])
  const writes = readFileSync(join(root, 'src/cli/io.ts'), 'utf8').match(/stderr\.write\(\w+/g)
  expect(writes).toEqual(['stderr.write(redact'])
})

describe('every tool can fail [GND-R9]', () => {
  let copy: string

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), 'sallyport-violations-'))
    for (const file of [
      'package.json',
      'tsconfig.json',
      'biome.json',
      '.oxlintrc.json',
      '.dependency-cruiser.cjs',
      'knip.json',
    ])
      cpSync(join(root, file), join(copy, file))
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    execFileSync('git', ['init', '-q', copy])
    const write = (path: string, text: string) => {
      mkdirSync(join(copy, path, '..'), { recursive: true })
      writeFileSync(join(copy, path), text)
    }
    write('src/core/index.ts', "export * from './low.ts'\n")
    write(
      'src/core/low.ts',
      "import { high } from '../apiserver/index.ts'\n\nexport const low = high\n",
    )
    write(
      'src/pki/index.ts',
      "import { inner } from '../http/inner.ts'\n\nexport const sideways = inner\n",
    )
    write('src/http/inner.ts', "import { pid } from 'node:process'\n\nexport const inner = pid\n")
    write('src/http/index.ts', "export * from './inner.ts'\n")
    write('src/apiserver/index.ts', 'export const high = 1\n')
    write(
      'src/apiserver/floating.ts',
      "import { readFile } from 'node:fs/promises'\n\nexport function forget(): void {\n  readFile('x')\n}\n",
    )
    write('src/apiserver/untyped.ts', 'export const wrong: string = 1\n')
    write('src/apiserver/ugly.ts', 'export   const ugly = "double";\n')
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  test('layers: upward, sideways, deep and process imports are reported', () => {
    const rules = new Set(cruise(copy).summary.violations.map((violation) => violation.rule.name))
    expect([...rules]).toEqual(
      expect.arrayContaining([
        'core-layer-imports-down-only',
        'jose-layer-imports-down-only',
        'through-public-entries-only',
        'process-is-for-the-cli',
      ]),
    )
  })

  test('lint: a floating promise is reported', () => {
    const run = spawnSync(bin('oxlint'), ['--type-aware', 'src'], { cwd: copy, encoding: 'utf8' })
    expect(run.stdout).toContain('no-floating-promises')
    expect(run.status).not.toBe(0)
  })

  test('types: a wrong type is reported', () => {
    const compiler = join(root, 'node_modules', 'typescript7', 'bin', 'tsc')
    const run = spawnSync(process.execPath, [compiler, '--noEmit'], { cwd: copy, encoding: 'utf8' })
    expect(run.stdout).toContain('src/apiserver/untyped.ts')
    expect(run.status).not.toBe(0)
  })

  test('format: an unformatted file is reported', () => {
    const run = spawnSync(bin('biome'), ['check', '--linter-enabled=false', 'src'], {
      cwd: copy,
      encoding: 'utf8',
    })
    expect(run.stdout + run.stderr).toContain('ugly.ts')
    expect(run.status).not.toBe(0)
  })

  test('dead code: an unused export is reported', () => {
    const run = spawnSync(bin('knip'), ['--include', 'files,exports'], {
      cwd: copy,
      encoding: 'utf8',
    })
    expect(run.stdout).toContain('src/apiserver/untyped.ts')
    expect(run.status).not.toBe(0)
  })
})
