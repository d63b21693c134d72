import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { generateBootstrapToken, tokenText } from '../../src/bootstrap/index.ts'
import { labAuthority, labMaterial } from '../../src/http/tls-lab.suite.ts'
import { buildOnce } from '../build-once.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { runSallyport } from '../support/sallyport-process.ts'
import { createToken, scratch, startJoin } from './join-lab.suite.ts'

// Each test runs several processes one after the other.
vi.setConfig({ testTimeout: 60_000 })

let directory: Awaited<ReturnType<typeof scratch>>
const servers: InProcessServer[] = []
// Building the command is not part of the time of a test.
beforeAll(async () => {
  await buildOnce()
}, 180_000)
beforeEach(async () => {
  directory = await scratch()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
  await directory.remove()
})

async function start(...flags: string[]): Promise<InProcessServer> {
  const server = await startInProcess({ flags })
  servers.push(server)
  return server
}

const file = (name: string): string => join(directory.path, name)

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('with anonymous access off, address and token are enough [DISC-S7]', async () => {
  const server = await start('--anonymous-auth=false')
  const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
  expect((await server.as({}).get(path)).status).toBe(401)
  const token = await createToken(server)
  const args = [`127.0.0.1:${server.port}`, '--token', token, '--node-name', 'n1']
  const { code } = await startJoin([...args, '--out', file('n1'), '--approval-timeout', '20s'])
    .ended
  expect(code).toBe(0)
})

test('the client may start first: it says what it waits for, and converges [DISC-R2, DISC-R20, DISC-T7]', async () => {
  const port = await freePort()
  const token = tokenText(generateBootstrapToken()).reveal()
  const run = startJoin([
    `127.0.0.1:${port}`,
    '--token',
    token,
    '--node-name',
    'n1',
    '--out',
    file('n1'),
    '--timeout',
    '60s',
    '--approval-timeout',
    '20s',
  ])
  await run.says(`not yet: nothing listens at 127.0.0.1:${port}`)
  await writeFile(file('token'), token, { mode: 0o600 })
  await start('--secure-port', String(port), '--bootstrap-token-file', file('token'))
  const { code, stdout } = await run.ended
  expect([code, stdout]).toEqual([0, expect.stringContaining('is system:node:n1')])
})

test('a token that the server does not know is given up early, with its own code [DISC-C6]', async () => {
  const server = await start()
  await createToken(server)
  const unknown = ['--token', tokenText(generateBootstrapToken()).reveal()]
  const only = ['--discovery-only', '--out', '-', '--token-timeout', '2s', '--output', 'json']
  const run = startJoin([`127.0.0.1:${server.port}`, ...unknown, ...only])
  const { code, stdout, stderr } = await run.ended
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'TOKEN_UNKNOWN' } }])
  expect(stderr).toContain('not yet: ')
})

test('a join can end with a running tunnel agent that has the certificate [TUN-I3]', async () => {
  const server = await start(
    '--tunnel',
    '--tunnel-agent-bind-address',
    '127.0.0.1',
    '--tunnel-agent-port',
    '0',
  )
  const token = await createToken(server)
  const run = startJoin([
    `127.0.0.1:${server.port}`,
    '--token',
    token,
    '--node-name',
    'n1',
    '--out',
    file('n1.kubeconfig'),
    '--approval-timeout',
    '20s',
    '--tunnel-agent',
    '--tunnel-server',
    server.serving.listeners['tunnel'] ?? '',
    '--health-server-port',
    '0',
    '--admin-server-port',
    '0',
  ])
  expect(await server.logged('agent connected')).toContain('"agents":1')
  run.stop()
  const { code } = await run.ended
  expect(code).toBe(0)
  expect((await readdir(file('n1.pki'))).toSorted()).toEqual(['ca.crt', 'client.crt', 'client.key'])
})

test('standard input has the token, or the document [DISC-R13, DISC-R16, DISC-C3]', async () => {
  const server = await start()
  const token = await createToken(server)
  const address = `127.0.0.1:${server.port}`
  const only = ['--discovery-only', '--out', '-', '--timeout', '20s']
  const piped = await runSallyport(['join', address, '--token', '-', ...only], {
    input: `${token}\n`,
  })
  expect([piped.code, piped.stdout]).toEqual([0, expect.stringContaining(`https://${address}`)])
  const admin = await server.admin()
  const { object } = await admin.get('/api/v1/namespaces/kube-public/configmaps/cluster-info')
  const { kubeconfig } = (object as unknown as { data: { kubeconfig: string } }).data
  const byDocument = await runSallyport(['join', '--cluster-info-file', '-', ...only], {
    input: kubeconfig,
  })
  expect([byDocument.code, byDocument.stdout]).toEqual([0, piped.stdout])
  const empty = await runSallyport(['join', '--cluster-info-file', '-', ...only], { input: '' })
  expect([empty.code, empty.stderr]).toEqual([
    1,
    expect.stringContaining('there is nothing in standard input'),
  ])
})

test('the token is not shown to a server that the document does not vouch for [DISC-R14]', async () => {
  const { certPem, keyPem } = await labMaterial(await labAuthority())
  const received: Buffer[] = []
  const stranger = createHttpsServer({ cert: certPem, key: keyPem.reveal() }, (_, response) =>
    response.end(),
  )
  stranger.on('secureConnection', (socket) => socket.on('data', (bytes) => received.push(bytes)))
  stranger.listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  const { port } = stranger.address() as AddressInfo
  const other = Buffer.from((await labAuthority('other')).bundlePem).toString('base64')
  await writeFile(
    file('cluster.yaml'),
    `apiVersion: v1\nkind: Config\nclusters: [{name: "", cluster: {server: "https://127.0.0.1:${port}", certificate-authority-data: ${other}}}]\n`,
  )
  const { code, stderr } = await startJoin([
    '--cluster-info-file',
    file('cluster.yaml'),
    '--token',
    'abcdef.q7w8e9r0t1y2u3i4',
    '--node-name',
    'n1',
    '--out',
    file('n1'),
    '--timeout',
    '0',
  ]).ended
  expect([code, stderr]).toEqual([1, expect.stringContaining('not signed by a CA')])
  expect(Buffer.concat(received).toString('latin1')).not.toContain('q7w8e9r0t1y2u3i4')
  stranger.close()
})

test('a failure on the way leaves no file [DISC-C10]', async () => {
  const server = await start()
  const token = await createToken(server, { extraGroups: [] })
  const args = [`127.0.0.1:${server.port}`, '--token', token, '--node-name', 'n1']
  const { code, stdout } = await startJoin([
    ...args,
    '--out',
    file('n1'),
    '--cert-dir',
    file('pki'),
    '--output',
    'json',
  ]).ended
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'REQUEST_FORBIDDEN' } }])
  expect(await readdir(directory.path)).toEqual(['.n1.pending-key'])
})

test('nothing secret is in a log at trace, an error or an argument list [DISC-T9]', async () => {
  const server = await start()
  const token = await createToken(server)
  const [id = '', secret = ''] = token.split('.')
  await writeFile(file('token'), token, { mode: 0o600 })
  const wrong = `${id}.${secret.slice(0, -1)}${secret.endsWith('a') ? 'b' : 'a'}`
  const address = `127.0.0.1:${server.port}`
  const limits = ['--timeout', '0', '--approval-timeout', '20s', '--log-level', 'trace']
  const name = ['--node-name', 'n1', ...limits]
  const env = { SALLYPORT_DEBUG: '1' }
  const runs = [
    await runSallyport(['join', address, '--token-file', file('token'), ...name], {
      env,
      cwd: directory.path,
    }),
    await runSallyport(['join', address, '--token', '-', ...name, '--out', 'x'], {
      env,
      input: wrong,
      cwd: directory.path,
    }),
    await runSallyport(['join', `${token}@${address}`, '--token', '-', ...name], {
      env,
      input: token,
    }),
    await runSallyport(['join', address, '--token', '-', ...name], {
      env,
      input: token.toUpperCase(),
    }),
    await runSallyport(['join', '--renew', ...name], { env, cwd: directory.path }),
  ]
  expect(runs.map(({ code }) => code)).toEqual([0, 1, 2, 2, 0])
  const all = (ends: typeof runs): string =>
    ends.map(({ stdout, stderr }) => stdout + stderr).join('\n')
  const said = `${all(runs)}\n${server.log}`
  const audit = await readFile(join(server.dataDirectory, 'audit.log'), 'utf8').catch(() => '')
  // Signed requests, and keys of certificates.
  for (const form of ['eyJ', 'PRIVATE KEY']) expect(`${said}${audit}`).not.toContain(form)
  // With this Node.js itself writes down what is sent, headers too.
  const debugged = await runSallyport(
    ['join', address, '--token-file', file('token'), '--discovery-only', '--out', '-', ...limits],
    { env: { NODE_DEBUG: 'https,http,tls' } },
  )
  expect(debugged.stderr).toContain('HTTP')
  for (const form of [
    secret,
    secret.toUpperCase(),
    Buffer.from(secret).toString('base64').slice(0, -4),
    Buffer.from(secret).toString('hex'),
  ])
    expect(`${said}${audit}${all([debugged])}`).not.toContain(form)
  expect(said).toContain(id)
  for (const decision of ['request', 'proven', 'signed request accepted', 'signed request refused'])
    expect(said).toMatch(new RegExp(`trace.*${decision}`))
})

test("--cluster-info-url fetches the document with the system's roots [DISC-R16, DISC-C2]", async () => {
  const server = await start()
  const ca = await labAuthority()
  const { certPem, keyPem } = await labMaterial(ca)
  const admin = await server.admin()
  const { object } = await admin.get('/api/v1/namespaces/kube-public/configmaps/cluster-info')
  const { kubeconfig } = (object as unknown as { data: { kubeconfig: string } }).data
  const host = createHttpsServer({ cert: certPem, key: keyPem.reveal() }, (_, response) =>
    response.end(kubeconfig),
  )
  host.listen(0, '127.0.0.1')
  await once(host, 'listening')
  const { port } = host.address() as AddressInfo
  await writeFile(file('roots.pem'), ca.bundlePem)
  const url = `https://127.0.0.1:${port}/cluster.yaml`
  const only = ['--discovery-only', '--out', '-', '--timeout', '0']
  const env = { SSL_CERT_FILE: file('roots.pem') }
  for (const flag of ['--cluster-info-url', '--discovery-file']) {
    const { code, stdout } = await startJoin([flag, url, ...only], env).ended
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`server: https://127.0.0.1:${server.port}`),
    ])
  }
  const strange = await startJoin(['--cluster-info-url', url, ...only]).ended
  expect([strange.code, strange.stderr]).toEqual([1, expect.stringContaining('to this system')])
  host.close()
})

test('IPv6 and the address that was typed [DISC-R21, DISC-T12, DISC-C7]', async () => {
  const server = await start('--bind-address', '::1')
  const token = await createToken(server)
  const args = ['--token', token, '--discovery-only', '--out', '-', '--timeout', '20s']
  const said = await startJoin([`[::1]:${server.port}`, ...args]).ended
  expect([said.code, said.stdout]).toEqual([0, expect.stringMatching(/server: https:\/\/\S+/)])
  const kept = await startJoin([`[::1]:${server.port}`, ...args, '--keep-address']).ended
  expect(kept.stdout).toContain(`server: https://[::1]:${server.port}`)
})
