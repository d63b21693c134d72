import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildOnce } from '../../build-once.ts'
import { run } from '../../support/kubectl.ts'
import { execUser, group } from './contest-case.ts'
import { type CountingServer, startCountingServer } from './counting-server.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = await readFile(join(root, 'docs/features/credentials.md'), 'utf8')
const blocks = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code)
const [first = ''] = blocks

/** What the others begin with: the first example as far as its `fetch`. */
const beginning = first.slice(0, first.indexOf('\n\nconst response'))

let server: CountingServer
let directory: string
beforeAll(async () => {
  server = await startCountingServer()
  directory = await mkdtemp(join(tmpdir(), 'sallyport-page-'))
  const packed = join(directory, 'node_modules/sallyport')
  await mkdir(packed, { recursive: true })
  await copyFile(join(root, 'package.json'), join(packed, 'package.json'))
  await symlink(await buildOnce(), join(packed, 'dist'))
  await symlink(join(root, 'node_modules/@kubernetes'), join(directory, 'node_modules/@kubernetes'))
  const cluster = {
    server: server.url,
    'certificate-authority-data': Buffer.from(server.lab.caPem).toString('base64'),
  }
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'it',
    clusters: [{ name: 'it', cluster }],
    users: [{ name: 'it', user: execUser('presigned-token') }],
    contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
  }
  await writeFile(join(directory, 'config'), JSON.stringify(kubeconfig))
})
afterAll(async () => {
  await server.stop()
  await rm(directory, { recursive: true, force: true })
})

/** Runs an example as a module of a program that has installed the package. */
async function runExample(code: string): Promise<string> {
  const file = join(directory, 'example.mjs')
  await writeFile(file, code.includes('loadContext') ? code : `${beginning}\n${code}`)
  server.begin(() => false)
  const spec = { interactive: false }
  const { stdout, stderr } = await run(process.execPath, [file], {
    env: {
      HOME: directory,
      KUBECONFIG: join(directory, 'config'),
      KUBERNETES_EXEC_INFO: JSON.stringify({
        kind: 'ExecCredential',
        apiVersion: `${group}/v1`,
        spec,
      }),
    },
  })
  return stderr + stdout
}

const ours = /^Bearer k8s-aws-v1\./

/** What each example prints, and as whom it asks last, in the order of the page. */
const printed: readonly (readonly [name: string, output: RegExp, authorization: RegExp])[] = [
  ['the first minute', /^200 0\n$/, ours],
  ['the client', /^0\n$/, ours],
  ['an informer', /^0\n$/, ours],
  ['a policy', /^POLICY_DENIED\n$/, /^nobody$/],
  ['the official client', /^0\n$/, ours],
  ['a provider', /^200\n$/, /^Bearer from-the-vault$/],
  ['a plugin', /^\{"kind":"ExecCredential",.*"token":"what-the-login-gave"\}\}\n$/, /^nobody$/],
]

test('every example of the page is run', () => {
  expect(blocks).toHaveLength(printed.length)
})

describe('the examples of docs/features/credentials.md work', () => {
  test.each(printed.map((each, index) => [...each, index] as const))(
    '%s [CRED-T2, CRED-R22, CRED-A1]',
    async (_name, output, authorization, index) => {
      expect(await runExample(blocks[index] ?? '')).toMatch(output)
      expect(server.seen.at(-1)?.authorization ?? 'nobody').toMatch(authorization)
    },
  )
})

const byName = (a: string, b: string): number => a.localeCompare(b)

test('the page explains every code of an error, and no others [CRED-E12]', async () => {
  const source = await readFile(join(root, 'src/credentials/errors.ts'), 'utf8')
  const codes = [...source.matchAll(/^ {2}\| '([A-Z_]+)'$/gm)].map(([, code = '']) => code)
  const [, table = ''] = page.split('\n## Errors\n')
  const explained = [...table.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code = '']) => code)
  expect(codes.length).toBeGreaterThan(20)
  expect(explained.toSorted(byName)).toEqual(codes.toSorted(byName))
})

test('the page names what is not offered, and what a plugin gets of the environment [CRED-R26, CRED-S8]', () => {
  const [, limits = ''] = page.split('\n## Limits\n')
  for (const word of ['JSONPath', 'variables from files', 'request bodies'])
    expect(limits).toContain(word)
  expect(page).toContain('**Environment**: all variables of your process')
})
