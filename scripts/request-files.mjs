// `npm run request-files`: which production files and functions run for one warm request, by V8 precise coverage.
// With `--json` the result is printed as JSON; with `--functions` the functions of each file are listed.
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { Agent, request } from 'node:https'
import { Session } from 'node:inspector/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { ensureBuilt } from './build.mjs'
import { ensureInstalled, requireNode, root } from './install.mjs'

requireNode()
ensureInstalled()
ensureBuilt()

const dist = pathToFileURL(`${join(root, 'dist')}/`).href
const load = (path) => import(new URL(path, dist).href)
const { ApiServer, serverOptions } = await load('apiserver/index.js')
const { allFeatures } = await load('apiserver/features/index.js')
const { parseOptions } = await load('cli/options/index.js')
const { kubernetesVersion } = await load('cli/serve/run.js')
const { serverProcess } = await load('cli/server-process.js')
const { silentLogger, systemClock } = await load('core/index.js')
const { privateKeyPem } = await load('pki/index.js')

const warmUp = 50
const rounds = 9
const { signal } = new AbortController()

/** Services of the measured server are dialed here, whatever their address is. */
async function startAddon() {
  const addon = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(addon, 'listening')
  const dial = async () => {
    const socket = connect(addon.address().port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  return { addon, feature: { name: 'dialer', open: async () => ({ dialer: { dial } }) } }
}

async function startServer(dataDirectory, feature) {
  const command = { command: 'sallyport serve', summary: '', options: serverOptions, examples: [] }
  const argv = ['--bind-address', '127.0.0.1', '--secure-port', '0']
  const { values } = await parseOptions(command, {
    argv,
    env: {},
    readFile: (path) => readFile(path, 'utf8'),
  })
  const server = new ApiServer({
    options: values,
    dataDirectory,
    version: await kubernetesVersion(),
    clock: systemClock,
    log: silentLogger,
    features: [feature, ...allFeatures],
    process: { ...serverProcess(), stdout: new PassThrough().resume() },
  })
  await server.start()
  return server
}

/** A ConfigMap, a Service with one ready Pod, and a user who may read the one and use the other. */
async function fill({ view }) {
  const create = (object) => view.write('create', object, {}, signal)
  const namespace = 'default'
  const rbac = 'rbac.authorization.k8s.io'
  await create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'a' } })
  const selector = { app: 'a' }
  await create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: 'a' },
    spec: { selector, ports: [{ port: 80, targetPort: 8080 }] },
  })
  const pod = await create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: 'a', labels: selector },
    spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 8080 }] }] },
  })
  const podIP = '10.1.2.3'
  const conditions = [{ type: 'Ready', status: 'True' }]
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions }
  await view.write('update', { ...pod, status }, { subresource: 'status' }, signal)
  const metadata = { namespace, name: 'measured' }
  await create({
    apiVersion: `${rbac}/v1`,
    kind: 'Role',
    metadata,
    rules: [{ apiGroups: [''], resources: ['configmaps', 'services/proxy'], verbs: ['get'] }],
  })
  await create({
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata,
    roleRef: { apiGroup: rbac, kind: 'Role', name: 'measured' },
    subjects: [{ apiGroup: rbac, kind: 'User', name: 'jane' }],
  })
}

/** Sends requests as a user with a client certificate, on one connection. */
async function caller({ pki, port }) {
  const issued = await pki.issueClient({ commonName: 'jane', organizations: [] })
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: pki.clusterCa.bundlePem,
    cert: issued.certPem,
    key: privateKeyPem(issued.key).reveal(),
  })
  const get = async (path) => {
    const [response] = await once(
      request({ agent, host: '127.0.0.1', port, path }).end(),
      'response',
    )
    await once(response.resume(), 'close')
    return response.statusCode
  }
  return { get, close: () => agent.destroy() }
}

/** Lets the server finish what follows a response. */
async function settle() {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** The functions that ran since the last call, by file. */
async function ranSince(session) {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const files = new Map()
  for (const { url, functions } of result) {
    if (!url.startsWith(dist)) continue
    const names = functions
      .filter(({ ranges: [whole] }) => whole.count > 0)
      .map(({ functionName, ranges: [whole] }) => functionName || `(at ${whole.startOffset})`)
    if (names.length > 0) files.set(url.slice(dist.length).replace(/js$/, 'ts'), names)
  }
  return files
}

/** What runs in most rounds: timers and watches of the server run in a few. */
async function measure(session, send) {
  for (let count = 0; count < warmUp; count++) await send()
  const seen = new Map()
  for (let round = 0; round < rounds; round++) {
    await settle()
    await ranSince(session)
    await send()
    await settle()
    for (const [file, names] of await ranSince(session)) {
      const functions = seen.get(file) ?? new Map()
      seen.set(file, functions)
      for (const name of new Set(names)) functions.set(name, (functions.get(name) ?? 0) + 1)
    }
  }
  const result = {}
  for (const file of [...seen.keys()].sort((a, b) => a.localeCompare(b))) {
    const usual = [...seen.get(file)].filter(([, count]) => count > rounds / 2)
    if (usual.length > 0) result[file] = usual.map(([name]) => name)
  }
  return result
}

async function untilServed(get, path) {
  for (let attempt = 0; attempt < 200; attempt++) {
    if ((await get(path)) === 200) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`${path} is not served`)
}

const paths = {
  'GET configmap': '/api/v1/namespaces/default/configmaps/a',
  'GET through the service proxy': '/api/v1/namespaces/default/services/a/proxy/',
}

const dataDirectory = await mkdtemp(join(tmpdir(), 'sallyport-request-files-'))
const { addon, feature } = await startAddon()
const server = await startServer(dataDirectory, feature)
const results = {}
try {
  await fill(server.serving)
  const { get, close } = await caller(server.serving)
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  for (const [name, path] of Object.entries(paths)) {
    await untilServed(get, path)
    results[name] = await measure(session, () => get(path))
  }
  session.disconnect()
  close()
} finally {
  await server.stop(AbortSignal.timeout(5_000))
  addon.close()
  await rm(dataDirectory, { recursive: true, force: true })
}

if (process.argv.includes('--json')) console.log(JSON.stringify(results))
else
  for (const [name, files] of Object.entries(results)) {
    const functions = Object.values(files).flat().length
    console.log(`${name}: ${Object.keys(files).length} files, ${functions} functions`)
    for (const [file, names] of Object.entries(files))
      console.log(
        process.argv.includes('--functions')
          ? `  ${file}\n${names.map((each) => `    ${each}`).join('\n')}`
          : `  ${file}  ${names.length}`,
      )
  }
