import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import { nodePluginHost } from '../credentials/index.ts'
import { TransportLab } from '../credentials/transport/transport-lab.suite.ts'
import type { Cluster, KubeconfigUser } from '../kubeconfig/index.ts'
import { transportFromKubeconfig } from './transport.ts'

let directory: string
let lab: TransportLab
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeconfig-transport-'))
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())
afterAll(() => rm(directory, { recursive: true, force: true }))

const { signal } = new AbortController()
const cluster = { server: 'https://example.com:6443/prefix' }

async function answerTo(context: { cluster: Cluster; user: KubeconfigUser }): Promise<string> {
  const plugins = nodePluginHost({ stderr: process.stderr })
  const transport = await transportFromKubeconfig(context, { plugins, registry: 'none' })
  lab.own(transport)
  const { body } = await transport.send({ method: 'GET', path: '/', headers: {}, signal })
  return (await body.toArray()).join('')
}

const tellHeaders = (request: IncomingMessage, response: ServerResponse): void => {
  const { authorization, 'impersonate-user': user } = request.headers
  response.end(`${authorization} ${String(user)}`)
}

async function writeIn(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text, { mode: 0o600 })
  return path
}

describe('a context of a kubeconfig', () => {
  test('becomes a transport to its server', async () => {
    const transport = await transportFromKubeconfig({ cluster, user: { token: new Secret('t') } })
    expect(transport.server).toBe('https://example.com:6443/prefix')
    transport.destroy()
  })

  test('with a plugin, a token file, a CA file or impersonation is used as it says [CRED-K6]', async () => {
    const server = await lab.serve(tellHeaders)
    const files = {
      token: await writeIn('token', 'from-file\n'),
      ca: await writeIn('ca.crt', lab.caPem),
      plugin: await writeIn(
        'plugin.mjs',
        `const apiVersion = 'client.authentication.k8s.io/v1'
         const status = { token: 'from-plugin' }
         console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status }))`,
      ),
    }
    const lab1 = { server: server.url, certificateAuthority: files.ca }
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: [files.plugin],
      interactiveMode: 'Never',
    }
    expect(await answerTo({ cluster: lab1, user: { exec } })).toBe('Bearer from-plugin undefined')
    const user = { tokenFile: files.token, impersonate: { username: 'jane' } }
    expect(await answerTo({ cluster: lab1, user })).toBe('Bearer from-file jane')
    const basic = { username: 'me', password: new Secret('p') }
    expect(await answerTo({ cluster: lab1, user: basic })).toBe('Basic bWU6cA== undefined')
  })

  test('runs its plugin once for a hundred cold requests at once [CRED-I4]', async () => {
    const server = await lab.serve(tellHeaders)
    const runs = await writeIn('runs', '')
    const plugin = await writeIn(
      'counted.mjs',
      `import { appendFileSync } from 'node:fs'
       appendFileSync(${JSON.stringify(runs)}, 'x')
       const apiVersion = 'client.authentication.k8s.io/v1'
       const status = { token: 'from-plugin' }
       console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status }))`,
    )
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: [plugin],
      interactiveMode: 'Never',
    }
    const cluster = { server: server.url, certificateAuthorityData: lab.caPem }
    const transport = await transportFromKubeconfig({ cluster, user: { exec } })
    lab.own(transport)
    const request = { method: 'GET', path: '/', headers: {}, signal }
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () =>
        (await (await transport.send(request)).body.toArray()).join(''),
      ),
    )
    expect(new Set(answers)).toEqual(new Set(['Bearer from-plugin undefined']))
    expect(await readFile(runs, 'utf8')).toBe('x')
  })

  test('with a provider that is no more is refused with the way out', async () => {
    const user = { authProvider: { name: 'gcp' } }
    await expect(answerTo({ cluster, user })).rejects.toMatchObject({
      hint: expect.stringContaining('gke-gcloud-auth-plugin'),
    })
  })

  test('whose proxy cannot be used says so without its password', async () => {
    const proxied = { ...cluster, proxyUrl: 'ftp://me:hunter2@proxy' }
    await expect(answerTo({ cluster: proxied, user: {} })).rejects.toThrow(
      /^proxy-url must be an http, https or socks5 URL$/,
    )
  })

  test('that names a file which cannot be read names it', async () => {
    const certificateAuthority = join(directory, 'absent.crt')
    const attempt = answerTo({ cluster: { ...cluster, certificateAuthority }, user: {} })
    await expect(attempt).rejects.toThrow(certificateAuthority)
  })

  test('with nonsense for a certificate is refused', async () => {
    const user = { clientKeyData: new Secret('nonsense'), clientCertificateData: 'nonsense' }
    const attempt = answerTo({ cluster, user })
    await expect(attempt).rejects.toMatchObject({ code: 'CLIENT_CONFIG_INVALID' })
  })
})
