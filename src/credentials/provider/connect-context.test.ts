import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { Cluster, KubeconfigUser, ResolvedContext } from '../../kubeconfig/index.ts'
import type { ClientCertificate } from '../credential.ts'
import { nodePluginHost } from '../exec/index.ts'
import { FakeClock } from '../sources/fake-plugin.suite.ts'
import { SourceRegistry } from '../sources/index.ts'
import { createTransport } from '../transport/index.ts'
import {
  ask,
  get,
  type LabServer,
  type Seen,
  seenIn,
  TransportLab,
  whoAmI,
} from '../transport/transport-lab.suite.ts'
import { type ContextHost, connectContext } from './connect-context.ts'
import { staticProvider } from './providers.ts'

let lab: TransportLab
let directory: string
let host: ContextHost
const at = (name: string) => join(directory, name)

beforeEach(async () => {
  lab = await TransportLab.open()
  directory = await mkdtemp(join(tmpdir(), 'connect-'))
  host = { plugins: nodePluginHost(), registry: new SourceRegistry() }
})
afterEach(async () => {
  await lab.clear()
  await rm(directory, { recursive: true })
})

async function connect(server: LabServer, user: KubeconfigUser, cluster: Partial<Cluster> = {}) {
  const context: ResolvedContext = {
    contextName: 'main',
    clusterName: 'c',
    cluster: { server: server.url, certificateAuthorityData: lab.caPem, ...cluster },
    userName: 'jane',
    user,
    namespace: 'default',
  }
  const connections = await connectContext(context, host)
  lab.own(connections)
  return createTransport(connections)
}

/** A plugin that counts its runs and gives the token, or the certificate, of the run. */
async function pluginUser(
  certificates: readonly ClientCertificate[] = [],
): Promise<KubeconfigUser> {
  for (const [index, { certPem, keyPem }] of certificates.entries()) {
    const status = { clientCertificateData: certPem, clientKeyData: keyPem.reveal() }
    await writeFile(at(`answer-${index + 1}`), answer(status))
  }
  const script = `#!/bin/sh
echo run >> '${at('runs')}'
run=$(wc -l < '${at('runs')}' | tr -d ' ')
if [ -e "${at('answer-')}$run" ]; then cat "${at('answer-')}$run"
else echo '${answer({ token: 'token-RUN' })}' | sed "s/RUN/$run/"; fi
`
  await writeFile(at('login'), script)
  await chmod(at('login'), 0o700)
  return {
    exec: {
      command: at('login'),
      apiVersion: 'client.authentication.k8s.io/v1',
      interactiveMode: 'Never',
    },
  }
}

const answer = (status: object) =>
  JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status })
const runs = async () => (await readFile(at('runs'), 'utf8')).trim().split('\n').length

/** Refuses everybody but those that are accepted. */
const accepting =
  (accept: (request: IncomingMessage) => boolean) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    if (accept(request)) whoAmI(request, response)
    else response.writeHead(401).end('{}')
  }

describe('a context with a plugin', () => {
  test('runs it once for a hundred cold requests [CRED-I4, CRED-R15, CRED-R18]', async () => {
    const server = await lab.serve(whoAmI)
    const transport = await connect(server, await pluginUser())
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask<Seen>(transport)))
    expect(new Set(answers.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer token-1']),
    )
    expect(await runs()).toBe(1)
  })

  test('is asked once more after a 401, and the caller sees 200 [CRED-C6, CRED-R16]', async () => {
    let accepted = 'Bearer token-1'
    const server = await lab.serve(accepting((r) => r.headers.authorization === accepted))
    const transport = await connect(server, await pluginUser())
    await ask(transport)
    accepted = 'Bearer token-2'
    const { status } = await transport.send(get('/'))
    expect([status, await runs()]).toEqual([200, 2])
  })

  test('shares its credential with a second client [CRED-R17]', async () => {
    const server = await lab.serve(whoAmI)
    const user = await pluginUser()
    const first = await connect(server, user)
    await ask(first)
    first.destroy()
    await ask(await connect(server, user))
    expect(await runs()).toBe(1)
  })

  test('takes its new certificate to new connections [CRED-R21]', async () => {
    let accepted = 'jane-1'
    const server = await lab.serve(accepting((request) => seenIn(request).commonName === accepted))
    const user = await pluginUser([
      await lab.certificate('jane-1'),
      await lab.certificate('jane-2'),
    ])
    const transport = await connect(server, user)
    expect((await ask<Seen>(transport)).commonName).toBe('jane-1')
    accepted = 'jane-2'
    expect((await ask<Seen>(transport)).commonName).toBe('jane-2')
  })

  test('fails the request if the plugin does; nothing is sent without it [CRED-R2, CRED-S16]', async () => {
    let requests = 0
    const server = await lab.serve((_request, response) => {
      requests++
      response.end()
    })
    const user = await pluginUser()
    await writeFile(at('login'), '#!/bin/sh\nexit 3\n')
    const transport = await connect(server, user)
    await expect(transport.send(get('/'))).rejects.toMatchObject({ code: 'EXIT', exitCode: 3 })
    expect(requests).toBe(0)
  })
})

describe('a context', () => {
  test('sends the token of its file, and the next one when that is replaced [CRED-K7, CRED-K12]', async () => {
    const clock = new FakeClock()
    host = { ...host, plugins: { ...host.plugins, clock } }
    await writeFile(at('token'), 'a\n')
    const transport = await connect(await lab.serve(whoAmI), { tokenFile: at('token') })
    expect((await ask<Seen>(transport)).authorization).toBe('Bearer a')
    await writeFile(at('token'), 'b\n')
    clock.advance(60_000)
    expect((await ask<Seen>(transport)).authorization).toBe('Bearer b')
  })

  test('acts as somebody else if its user says so [CRED-K9]', async () => {
    const server = await lab.serve((request, response) => {
      const asked = Object.entries(request.headers).filter(([name]) => name.startsWith('impers'))
      response.end(JSON.stringify(Object.fromEntries(asked)))
    })
    const impersonate = {
      username: 'alice',
      uid: '7',
      groups: ['dev', 'ops'],
      extra: { 'Example.com/Scopes': ['a', 'b'], ü: ['c'] },
    }
    expect(await ask(await connect(server, { impersonate }))).toEqual({
      'impersonate-user': 'alice',
      'impersonate-uid': '7',
      'impersonate-group': 'dev, ops',
      'impersonate-extra-example.com%2fscopes': 'a, b',
      'impersonate-extra-%c3%bc': 'c',
    })
  })

  test('believes the server as its cluster says [CRED-K10]', async () => {
    const server = await lab.serve(whoAmI)
    const outcome = async (cluster: Partial<Cluster>) =>
      (await connect(server, {}, cluster)).send(get('/')).then(
        ({ status }) => status,
        () => 'refused',
      )
    const other = (await TransportLab.open()).caPem
    expect(await outcome({})).toBe(200)
    expect(await outcome({ certificateAuthorityData: other })).toBe('refused')
    expect(await outcome({ tlsServerName: 'kubernetes' })).toBe(200)
    expect(await outcome({ tlsServerName: 'other' })).toBe('refused')
    const insecure = { certificateAuthorityData: other, insecureSkipTlsVerify: true }
    expect(await outcome(insecure)).toBe(200)
  })

  test('sends nothing in clear, unless its caller insists [CRED-S9]', async () => {
    const server = createServer((request, response) => {
      response.end(JSON.stringify([request.headers.authorization ?? 'nothing']))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = { url: `http://127.0.0.1:${port}` } as LabServer
    const seen = async () => ask(await connect(url, { token: new Secret('t') }))
    expect(await seen()).toEqual(['nothing'])
    host = { ...host, allowHttp: true }
    expect(await seen()).toEqual(['Bearer t'])
    server.closeAllConnections()
    server.close()
  })

  test('goes to another address of its cluster when the first is gone [CRED-T5]', async () => {
    const gone = await lab.serve(whoAmI)
    const second = await lab.serve(whoAmI)
    await gone.stop()
    const location = { addresses: [second.url] }
    const transport = await connect(
      gone,
      { token: new Secret('t') },
      { extensions: new Map([['sallyport.dev/cluster-location', location]]) },
    )
    expect((await ask<Seen>(transport)).authorization).toBe('Bearer t')
  })

  test('gives way to a provider of the host, whose wrapper sees every request [CRED-R22]', async () => {
    let wrapped = 0
    const provider = staticProvider({ token: new Secret('mine') })
    const counting = {
      updateTransportConfig: (config: Parameters<typeof provider.updateTransportConfig>[0]) =>
        config.wrap((next) => (request) => {
          wrapped++
          return next(request)
        }),
    }
    host = { ...host, providers: [provider, counting] }
    const transport = await connect(await lab.serve(whoAmI), await pluginUser())
    expect((await ask<Seen>(transport)).authorization).toBe('Bearer mine')
    expect(wrapped).toBe(1)
  })
})
