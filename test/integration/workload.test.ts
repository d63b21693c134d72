import { chmod, chown, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { KubeObject } from '../../src/core/index.ts'
import { buildOnce } from '../build-once.ts'
import { eventually } from '../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createMachine, WorkloadRunner, whyNoMountNamespace } from '../support/running-workload.ts'

const reason = whyNoMountNamespace()
if (reason) console.warn(`workload run is not tested: ${reason}`)
const isRoot = process.getuid?.() === 0
const nobody = 65_534

/** What the process sees: the files, the environment, and who the cluster takes it for. */
const lookAround = `
const fs = require('node:fs'), https = require('node:https')
const dir = process.env.SALLYPORT_SERVICE_ACCOUNT_DIR
const read = (name) => fs.readFileSync(dir + '/' + name, 'utf8')
const token = read('token')
const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, KUBECONFIG: kubeconfig } = process.env
const tell = (more) => { console.log(JSON.stringify({ dir, kubeconfig, host, files: fs.readdirSync(dir), namespace: read('namespace'), uid: process.getuid(), ...more })); process.exitCode = 7 }
if (!host) tell({})
else https.request({ host, port, ca: read('ca.crt'), method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' } }, async (answer) => {
  let text = ''
  for await (const chunk of answer) text += chunk
  tell({ user: JSON.parse(text).status.userInfo, payload: JSON.parse(Buffer.from(token.split('.')[1], 'base64url')) })
}).end(body)
`
const serve = `require('node:http').createServer((request, response) => response.end('hello')).listen(process.env.PORT, process.env.POD_IP, () => console.log('listening'))`
const node = (script: string) => ['--', process.execPath, '-e', script]
const forever = 'setInterval(() => {}, 1000); console.log("pid " + process.pid)'

interface Seen {
  readonly dir: string
  readonly kubeconfig?: string
  readonly host?: string
  readonly files: string[]
  readonly namespace: string
  readonly uid: number
  readonly user?: { username: string; extra: Record<string, string[]> }
}

let server: InProcessServer
let scratch: string
let runner: WorkloadRunner

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-workload-test-'))
  server = await startInProcess()
  await buildOnce() // is not part of the time of a test
  runner = new WorkloadRunner(await createMachine({ server, directory: scratch }, 'laptop'))
}, 300_000)
afterAll(async () => {
  await runner?.close()
  await server?.close()
  await rm(scratch, { recursive: true, force: true })
})

const pods = '/api/v1/namespaces/default/pods'
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'

async function itemsAt(path: string): Promise<KubeObject[]> {
  const { object } = await (await server.admin()).get(path)
  return Array.isArray(object['items']) ? object['items'] : []
}
const podNames = async () => (await itemsAt(pods)).map(({ metadata }) => metadata.name)

const untilNoPod = (name: string) =>
  eventually(`Pod ${name} is gone`, async () => !(await podNames()).includes(name))

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    const tell = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => tell(true)).once('error', () => tell(false))
  })

const isProcess = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function service(name: string, port: number): Promise<void> {
  await (await server.admin()).post('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ port: 80, targetPort: port }] },
  })
}

/** The addresses and ports of a Service's ready endpoints. */
async function endpointsOf(name: string): Promise<string> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=${name}`
  const slices = await itemsAt(path)
  return JSON.stringify(slices.map((slice) => [slice['endpoints'], slice['ports']]))
}

/** A port that nothing listens on; another process may take it, but hardly does. */
const freePort = async (): Promise<number> => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const address = taken.address()
  await new Promise((resolve) => taken.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

describe.skipIf(reason !== '')('a process that `workload run` runs', () => {
  test.each<[string, number | undefined]>([
    ['as who runs it', undefined],
    ...(isRoot ? [['as an ordinary user', nobody] satisfies [string, number]] : []),
  ])(
    '%s is its service account, at the path that clients know [ISS-W2, ISS-W4]',
    async (_who, uid) => {
      const kubeconfig = join(scratch, `for-${uid}.kubeconfig`)
      await writeFile(kubeconfig, await readFile(runner.kubeconfig))
      if (uid !== undefined) {
        await chmod(scratch, 0o711)
        await chown(kubeconfig, uid, uid)
      }
      const own = new WorkloadRunner(kubeconfig)
      const audiences = ['--audience', 'vault', '--audience', 'aws=https://sts.amazonaws.com']
      const words = ['--name', `me-${uid ?? 'x'}`, ...audiences, ...node(lookAround)]
      const { code, stdout, stderr } = await own.run(words, uid === undefined ? {} : { uid })
      await own.close()
      expect([code, stderr]).toEqual([7, ''])
      const seen = JSON.parse(stdout) as Seen
      expect(seen.dir).toBe('/var/run/secrets/kubernetes.io/serviceaccount')
      expect(seen.files).toEqual(
        expect.arrayContaining(['..data', 'aws', 'ca.crt', 'namespace', 'token', 'vault']),
      )
      expect(seen.namespace).toBe('default')
      expect(seen.uid).toBe(uid ?? process.getuid?.())
      expect(seen.user?.username).toBe('system:serviceaccount:default:default')
      expect(seen.user?.extra['authentication.kubernetes.io/pod-name']).toEqual([
        `me-${uid ?? 'x'}`,
      ])
      expect(await podNames()).not.toContain(`me-${uid ?? 'x'}`)
      expect(await itemsAt(leases)).not.toContainEqual(
        expect.objectContaining({
          metadata: expect.objectContaining({ name: `me-${uid ?? 'x'}` }),
        }),
      )
    },
    60_000,
  )

  test('is an endpoint of its Service while it listens, and until it ends [ISS-W1]', async () => {
    const port = await freePort()
    await service('web', port)
    const running = await runner.start(['--service', 'web', '--port', `${port}`, ...node(serve)])
    await running.printed(/listening/)
    await eventually('the endpoint is ready', async () => {
      const found = await endpointsOf('web')
      return found.includes('"127.0.0.1"') && found.includes('"ready":true')
    })
    expect(await endpointsOf('web')).toContain(`"port":${port}`)
    const [pod] = (await itemsAt(pods)).filter(({ metadata }) => metadata.name.startsWith('web-'))
    expect(pod).toMatchObject({
      metadata: { labels: { app: 'web', 'sallyport.dev/workload': 'laptop' } },
      spec: { nodeName: 'laptop', serviceAccountName: 'default' },
      status: { phase: 'Running', podIP: '127.0.0.1' },
    })
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(143)
    expect(await isListening(port)).toBe(false)
    expect(await podNames()).not.toContain(pod?.metadata.name)
    await eventually(
      'no endpoint is left',
      async () => !(await endpointsOf('web')).includes('127.'),
    )
  }, 60_000)

  test('ends when somebody deletes its Pod [ISS-W1]', async () => {
    const running = await runner.start(['--name', 'evicted', ...node(forever)])
    const [, pid] = await running.printed(/pid (\d+)/)
    await (await server.admin()).delete(`${pods}/evicted`)
    expect(await running.ended).toBe(1)
    expect(running.stderr).toContain('the Pod was deleted, so the process was ended')
    expect(isProcess(Number(pid))).toBe(false)
  }, 60_000)

  test('and its Pod go when `workload run` is killed [ISS-W1]', async () => {
    const words = ['--name', 'orphan', '--lease-duration', '5s', ...node(forever)]
    const running = await runner.start(words)
    const [, pid] = await running.printed(/pid (\d+)/)
    running.process.kill('SIGKILL')
    await running.ended
    await eventually('the process is gone', () => !isProcess(Number(pid)))
    await untilNoPod('orphan')
    await eventually('its Lease is gone', async () => (await itemsAt(leases)).length === 0)
    expect(await podNames()).not.toContain('orphan')
  }, 60_000)

  test('leaves nothing behind that it has started', async () => {
    const words = ['--', 'sh', '-c', 'sleep 1000 & echo pid $!; exit 3']
    const { code, stdout } = await runner.run(words)
    expect(code).toBe(3)
    await eventually('the child is gone', () => !isProcess(Number(/pid (\d+)/.exec(stdout)?.[1])))
  }, 60_000)

  test('is killed when it does not end in time', async () => {
    const stubborn = `process.on('SIGTERM', () => console.log('no')); ${forever}`
    const running = await runner.start(['--grace-period', '300ms', ...node(stubborn)])
    await running.printed(/pid/)
    running.process.kill('SIGINT')
    await running.printed(/no/)
    expect(await running.ended).toBe(137)
  }, 60_000)

  test('has a token that nobody else on the machine can read [ISS-W2]', async () => {
    const place = await mkdtemp(join(tmpdir(), 'workload-place-'))
    const running = await runner.start(['--name', 'secretive', ...node(forever)], {
      runtimeDirectory: place,
    })
    await running.printed(/pid/)
    const [root = ''] = await readdir(place)
    expect(((await stat(join(place, root))).mode & 0o777).toString(8)).toBe('700')
    const token = join(place, root, 'serviceaccount', 'token')
    expect(((await stat(token)).mode & 0o777).toString(8)).toBe('600')
    running.process.kill('SIGTERM')
    await running.ended
    expect(await readdir(place)).toEqual([])
    await rm(place, { recursive: true })
  }, 60_000)

  test('has a token that dies with it', async () => {
    const path = '/var/run/secrets/kubernetes.io/serviceaccount/token'
    const { stdout } = await runner.run(['--', 'cat', path])
    const caller = server.as({ token: stdout })
    expect((await caller.get('/version')).status).toBe(401)
  }, 60_000)

  test('does not start at an address that the cluster refuses [ISS-W1]', async () => {
    const words = ['--name', 'nowhere', '--pod-ip', '169.254.7.7', '--output', 'json']
    const { code, stdout, stderr } = await runner.run([...words, ...node('console.log("ran")')])
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'POD_IP_REFUSED' } }])
    expect(stderr).toMatch(/169\.254\.7\.7 .*\nhint: .*--pod-ip/)
    expect(await podNames()).not.toContain('nowhere')
  })

  test('without the fixed path finds its way by KUBECONFIG [ISS-W5]', async () => {
    const { code, stdout } = await runner.run(['--no-in-cluster', ...node(lookAround)])
    expect(code).toBe(7)
    const seen = JSON.parse(stdout) as Seen
    expect(seen.host).toBeUndefined()
    expect(seen.kubeconfig).toMatch(/sallyport-workload-.*kubeconfig$/)
    expect(seen.files).toContain('token')
  }, 60_000)
})
