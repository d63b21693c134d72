import { execFile, execFileSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

let server: InProcessServer
let directory: string
beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sallyport-private-'))
  return () => rmSync(directory, { recursive: true, force: true })
})

/** Every file with a credential that a command writes, as it is named by default or in the docs. */
const privateFiles = [
  'jane.kubeconfig',
  'admin.kubeconfig',
  'worker-1.kubeconfig',
  '.worker-1.kubeconfig.pending-key',
  '.jane.kubeconfig.0123456789ab.tmp',
  'admin.conf',
  'kubelet.conf',
  'client.key',
  'ca.key',
  'sa.key',
  'tunnel-agent.pem',
  'store-key',
  'audit.log',
  'audit-2026-01-31T12-00-00.000.log',
]
const places = ['', 'examples/whoami-addon', 'dist', 'docs', 'src/cli']
const table = places.flatMap((place) => privateFiles.map((file) => join(place, file)))

function plant(files: readonly string[]): void {
  for (const file of files) {
    mkdirSync(join(directory, dirname(file)), { recursive: true })
    writeFileSync(join(directory, file), 'key')
  }
}

test('[SEC-R2201] git adds no file with a key, wherever a command has written it', () => {
  copyFileSync(join(root, '.gitignore'), join(directory, '.gitignore'))
  execFileSync('git', ['init', '--quiet'], { cwd: directory })
  plant([...table, 'control.ts'])
  const git = ['ls-files', '--others', '--exclude-standard']
  const added = execFileSync('git', git, { cwd: directory, encoding: 'utf8' })
  expect(added.trim().split('\n').toSorted()).toEqual(['.gitignore', 'control.ts'])
})

test('[SEC-R2201] a data directory keeps itself out of git', () => {
  expect(readFileSync(join(dirname(server.serving.adminKubeconfig), '.gitignore'), 'utf8')).toBe(
    '*\n',
  )
})

test('[SEC-R2201] npm packs no file with a key', () => {
  for (const part of ['package.json', 'README.md', 'LICENSE'])
    copyFileSync(join(root, part), join(directory, part))
  cpSync(join(root, 'examples/whoami-addon'), join(directory, 'examples/whoami-addon'), {
    recursive: true,
  })
  plant([...table, 'dist/control.js'])
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: directory,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path)
  expect(paths).toContain('dist/control.js')
  expect(paths.filter((path) => table.includes(path))).toEqual([])
})

/** `npm run sallyport` as somebody in another directory calls it. */
const npmRun = (cwd: string, args: readonly string[]) =>
  promisify(execFile)('npm', ['run', '--silent', '--prefix', root, 'sallyport', '--', ...args], {
    cwd,
  }).then(
    () => ({ code: 0, stderr: '' }),
    (error: { code: number; stderr: string }) => error,
  )

test('[SEC-R2202, SEC-R2203] npm run sallyport writes in the directory of its caller, and overwrites nothing', async () => {
  const before = readdirSync(root).filter((name) => name !== 'dist')
  expect(await npmRun(directory, createJane())).toMatchObject({ code: 0 })
  const file = join(directory, 'jane.kubeconfig')
  expect(readdirSync(directory)).toEqual(['jane.kubeconfig'])
  expect(readdirSync(root).filter((name) => name !== 'dist')).toEqual(before)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const content = readFileSync(file, 'utf8')
  expect(await npmRun(directory, createJane())).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('exists already and is not overwritten'),
  })
  expect(readFileSync(file, 'utf8')).toBe(content)
}, 180_000)

const createJane = (): string[] => [
  'user',
  'create',
  'jane',
  '--data-dir',
  dirname(server.serving.adminKubeconfig),
]
