import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { addonFeature } from '../../src/apiserver/features/addon.ts'
import { issuerFeature } from '../../src/apiserver/features/issuer.ts'
import type { Feature } from '../../src/apiserver/index.ts'
import { addRevocation } from '../../src/authn/index.ts'
import { eventually } from '../support/eventually.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { allOfProxy, outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

const everything = allOfProxy('get', 'create', 'update', 'patch', 'delete')
const sessions = '/apis/addon.sallyport.dev/v1alpha1/namespaces/default/sessions'

const labs: ServiceProxyLab[] = []
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.close()
})

/** A server with an add-on that answers, hangs, streams, sends and receives; and two users. */
async function open(flags: readonly string[] = [], annotations: Record<string, string> = {}) {
  const lab = await ServiceProxyLab.open(flags)
  labs.push(lab)
  const held: ServerResponse[] = []
  const backend = await lab.backend((request, response) => {
    if (request.url === '/hang') held.push(response)
    else if (request.url === '/stream') {
      held.push(response)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
    } else if (request.url?.startsWith('/bytes/')) {
      response.end(Buffer.alloc(Number(request.url.slice(7)), 'x'))
    } else void text(request).then((body) => response.end(String(body.length)))
  })
  const path = await lab.addon('web', backend, { annotations })
  const [ann, bob] = await Promise.all([
    lab.user('ann', [everything]),
    lab.user('bob', [everything]),
  ])
  return { lab, path, ann, bob, held, backend }
}

/** An add-on that agrees to every WebSocket and says nothing more. */
async function openTunnels(flags: readonly string[] = [], features?: readonly Feature[]) {
  const lab = await ServiceProxyLab.open(flags, features)
  labs.push(lab)
  const backend = await lab.rawBackend((socket) => {
    socket.once('data', () =>
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
      ),
    )
    socket.on('end', () => socket.end())
  })
  const path = await lab.addon('ws', backend)
  const ann = await lab.user('ann', [everything])
  return { lab, path, ann, backend }
}

async function websocket(who: HttpsCaller, path: string, token?: string): Promise<Socket> {
  const socket = await who.socket()
  socket.write(
    `GET ${path}/ HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      (token === undefined ? '' : `Authorization: Bearer ${token}\r\n`) +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  return socket
}

async function answered(who: HttpsCaller, path: string): Promise<IncomingMessage> {
  const [response] = (await once(who.send(path), 'response')) as [IncomingMessage]
  return response.on('error', () => {})
}

/** Resolves when a stream is closed, in good order or not. */
const closed = (stream: NodeJS.EventEmitter): Promise<void> =>
  new Promise((resolve) => {
    stream.once('close', resolve)
  })

/** The reasons in the audit log by which requests have been ended. */
async function endings(lab: ServiceProxyLab): Promise<string[]> {
  const log = await readFile(join(lab.server.dataDirectory, 'audit.log'), 'utf8').catch(() => '')
  return log
    .split('\n')
    .filter((line) => line.includes('"stage":"ResponseComplete"'))
    .flatMap((line) => JSON.parse(line).annotations?.['sallyport.dev/ended'] ?? [])
}

const audited = (lab: ServiceProxyLab, reason: string): Promise<true> =>
  eventually(
    `${reason} in the audit log`,
    async () => (await endings(lab)).includes(reason) || undefined,
  )

describe.skipIf(outwardAddress === undefined)('limits of the service proxy', () => {
  test('requests per second are counted per user, and 429 says when to come again [ADDON-R39, ADDON-T50]', async () => {
    const { path, ann, bob } = await open([
      '--addon-requests-per-second',
      '1',
      '--addon-request-burst',
      '5',
    ])
    const began = performance.now()
    const answers = await Promise.all(Array.from({ length: 40 }, () => ann.get(`${path}/x`)))
    const seconds = (performance.now() - began) / 1_000
    const refused = answers.filter(({ status }) => status === 429)
    const passed = answers.filter(({ status }) => status === 200)
    expect(passed.length).toBeGreaterThanOrEqual(5)
    expect(passed.length).toBeLessThanOrEqual(5 + seconds + 1)
    expect(passed.length + refused.length).toBe(40)
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await bob.get(`${path}/x`)).status).toBe(200)
  })

  test('requests at a time are counted per user [ADDON-R39]', async () => {
    const { path, ann, bob, held } = await open(['--addon-max-requests', '2'])
    const open2 = [ann.send(`${path}/hang`), ann.send(`${path}/hang`)]
    await eventually('both are open', () => held.length === 2)
    expect((await ann.get(`${path}/x`)).status).toBe(429)
    expect((await bob.get(`${path}/x`)).status).toBe(200)
    for (const response of held) response.end('done')
    await Promise.all(open2.map((request) => once(request, 'response')))
    await eventually('there is room again', async () => (await ann.get(`${path}/x`)).status === 200)
  })

  test('tunnels at a time are counted per user [ADDON-R39]', async () => {
    const { path, ann } = await openTunnels(['--addon-max-tunnels', '1'])
    const first = await websocket(ann, path)
    await once(first, 'data')
    expect(await text(await websocket(ann, path))).toMatch(/^HTTP\/1.1 429 /)
    first.destroy()
  })

  test('bytes per second are shared by all connections of a user, in each direction [ADDON-R40, ADDON-T50]', async () => {
    const budget = 256 * 1024
    const { path, ann, bob } = await open(['--addon-bytes-per-second', String(budget)])
    await Promise.all([ann.get(`${path}/x`), bob.get(`${path}/x`)])
    const from = performance.now()
    const downloads = Array.from({ length: 8 }, () => ann.get(`${path}/bytes/${budget / 2}`))
    const other = bob.get(`${path}/bytes/1000`).then(() => performance.now() - from)
    const sizes = (await Promise.all(downloads)).map((answer) => answer.text.length)
    const tookMs = performance.now() - from
    expect(sizes.every((size) => size === budget / 2)).toBe(true)
    // Four seconds' worth, of which one may come at once; timers may fire a little early.
    expect(tookMs).toBeGreaterThan(2_900)
    expect(await other).toBeLessThan(tookMs)
    const began = performance.now()
    const body = Buffer.alloc(budget / 2)
    const uploads = await Promise.all(Array.from({ length: 4 }, () => ann.post(`${path}/x`, body)))
    expect(uploads.map((answer) => answer.text)).toEqual(Array(4).fill(String(budget / 2)))
    expect(performance.now() - began).toBeGreaterThan(900)
  })

  test('a Service may ask for less than the operator allows, and for no more [ADDON-P7]', async () => {
    const { path, ann, lab } = await open(['--addon-max-request-age', '60s'], {
      'sallyport.dev/proxy-requests-per-second': '1',
      'sallyport.dev/proxy-request-burst': '2',
      'sallyport.dev/proxy-max-request-age': '100h',
    })
    const began = performance.now()
    const answers = await Promise.all(Array.from({ length: 30 }, () => ann.get(`${path}/x`)))
    const seconds = (performance.now() - began) / 1_000
    const passed = answers.filter(({ status }) => status === 200)
    expect(passed.length).toBeLessThanOrEqual(2 + seconds + 1)
    const free = await lab.backend((_request, response) => response.end('ok'))
    const other = await lab.addon('other', free)
    expect((await ann.get(`${other}/`)).status).toBe(200)
  })

  test('a limit that cannot be read is a 503 that names it [ADDON-P7]', async () => {
    const { path, ann } = await open([], { 'sallyport.dev/proxy-max-requests': 'many' })
    const answer = await ann.get(`${path}/x`)
    expect([answer.status, answer.object['message']]).toEqual([
      503,
      'service "web" has a limit that cannot be read: sallyport.dev/proxy-max-requests: "many" is not a number of 1 or more',
    ])
  })
})

describe.skipIf(outwardAddress === undefined)('everything ends', () => {
  test('a request that hangs is a 504 at its maximum age [ADDON-R42, ADDON-T49]', async () => {
    const { path, ann, lab } = await open(['--addon-max-request-age', '1500ms'])
    expect((await ann.get(`${path}/hang`)).status).toBe(504)
    expect(await audited(lab, 'max-age')).toBe(true)
  })

  test('an answer that does not end is cut at its maximum age, with its reason [ADDON-R42, ADDON-T49]', async () => {
    const { path, ann, lab, held } = await open(['--addon-max-request-age', '1500ms'])
    const response = await answered(ann, `${path}/stream`)
    const backendClosed = closed(held[0] as ServerResponse)
    response.resume()
    await closed(response)
    expect(response.complete).toBe(false)
    await backendClosed
    expect(await audited(lab, 'max-age')).toBe(true)
  })

  test('what is silent for too long is cut, with its reason [ADDON-R42, ADDON-R43]', async () => {
    const { path, ann, lab } = await openTunnels(['--addon-idle-timeout', '1500ms'])
    const socket = await websocket(ann, path)
    socket.resume()
    await closed(socket)
    expect(await audited(lab, 'idle')).toBe(true)
  })

  test('a tunnel is cut at its maximum age, on both sides [ADDON-R43, ADDON-T48]', async () => {
    const { path, ann, lab, backend } = await openTunnels(['--addon-max-tunnel-age', '1500ms'])
    const socket = await websocket(ann, path)
    await once(socket, 'data')
    const far = [...backend.open].map((each) => closed(each))
    await closed(socket)
    await Promise.all(far)
    expect(await audited(lab, 'max-age')).toBe(true)
  })

  test('revocation cuts a WebSocket and a download at once, on both sides [ADDON-R43, ADDON-T48, ADDON-P5]', async () => {
    const tunnels = await openTunnels()
    const requests = await open()
    const socket = await websocket(tunnels.ann, tunnels.path)
    await once(socket, 'data')
    const far = [...tunnels.backend.open].map((each) => closed(each))
    const download = await answered(requests.ann, `${requests.path}/stream`)
    download.resume()
    const cut = [closed(socket), closed(download), ...far]
    for (const { lab } of [tunnels, requests])
      await addRevocation(
        lab.server.serving.view,
        { type: 'user', value: 'ann' },
        AbortSignal.timeout(5_000),
      )
    await Promise.all(cut)
    expect(download.complete).toBe(false)
    expect(await audited(tunnels.lab, 'revoked')).toBe(true)
    expect(await audited(requests.lab, 'revoked')).toBe(true)
  })

  test('the right that is taken away ends what is open within the period [ADDON-P5, ADDON-T48]', async () => {
    const { path, ann, lab } = await openTunnels(['--addon-recheck-period', '200ms'])
    const socket = await websocket(ann, path)
    await once(socket, 'data')
    const admin = await lab.server.admin()
    await admin.delete('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/ann')
    await closed(socket)
    expect(await audited(lab, 'not-authorized')).toBe(true)
  })

  test('a credential that is withdrawn ends what it has opened within the period [ADDON-X17]', async () => {
    const features = [addonFeature, issuerFeature]
    const { path, lab } = await openTunnels(['--addon-recheck-period', '200ms'], features)
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    const admin = await lab.server.admin()
    await lab.user('system:serviceaccount:default:bot', [everything])
    await admin.post(accounts, { metadata: { name: 'bot' } })
    const { text: request } = await admin.post(`${accounts}/bot/token`, { spec: {} })
    const { token } = JSON.parse(request).status
    const socket = await websocket(lab.server.as({ token }), path, token)
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 101 /)
    await admin.delete(`${accounts}/bot`)
    await closed(socket)
    expect(await audited(lab, 'revoked')).toBe(true)
  })

  test('so does the right to act as somebody else [ADDON-P5]', async () => {
    const { path, lab, held } = await open(['--addon-recheck-period', '200ms'])
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const admin = await lab.server.admin()
    await admin.post(`${rbac}/clusterroles`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'act' },
      rules: [{ apiGroups: [''], resources: ['users'], verbs: ['impersonate'] }],
    })
    await admin.post(`${rbac}/clusterrolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'act' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'act' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'actor' }],
    })
    const actor = lab.server.as(await lab.server.issue('actor'))
    const request = actor.send(`${path}/stream`, { headers: { 'impersonate-user': 'ann' } })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.on('error', () => {}).resume()
    expect([response.statusCode, held.length]).toEqual([200, 1])
    await admin.delete(`${rbac}/clusterrolebindings/act`)
    await closed(response)
    expect(await audited(lab, 'not-authorized')).toBe(true)
  })

  test('the end of the server waits for a request and for no tunnel', async () => {
    const { path, ann, lab, held } = await open()
    const waiting = ann.get(`${path}/hang`)
    await eventually('it is open', () => held.length === 1)
    const drained = lab.server.drain()
    held[0]?.end('answered')
    expect((await waiting).text).toBe('answered')
    await drained
  })
})

describe.skipIf(outwardAddress === undefined)('sessions in the API [ADDON-P8]', () => {
  test('are listed, shown as a table, watched, and cut by deletion', async () => {
    const { path, ann, lab } = await openTunnels()
    const admin = await lab.server.admin()
    const watch = await admin.watch(`${sessions}?watch=true`)
    const socket = await websocket(ann, path)
    await once(socket, 'data')
    const added = await watch.next()
    expect(added).toMatchObject({
      type: 'ADDED',
      object: {
        apiVersion: 'addon.sallyport.dev/v1alpha1',
        kind: 'Session',
        spec: { user: 'ann', target: 'services/ws', type: 'Tunnel', method: 'GET' },
      },
    })
    const { name } = added.object.metadata
    const list = await admin.get(sessions)
    expect(list.object).toMatchObject({ kind: 'SessionList', items: [{ metadata: { name } }] })
    const table = await admin.get(sessions, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    })
    expect(table.object).toMatchObject({
      kind: 'Table',
      rows: [
        {
          cells: [
            name,
            'ann',
            'services/ws',
            'Tunnel',
            expect.anything(),
            0,
            expect.anything(),
            '',
            expect.stringContaining('http://'),
            expect.anything(),
          ],
        },
      ],
    })
    expect((await admin.get(`${sessions}/${name}`)).status).toBe(200)
    expect((await admin.get(`${sessions}/none`)).status).toBe(404)
    expect((await ann.get(sessions)).status).toBe(403)
    expect((await admin.delete(`${sessions}/${name}`)).status).toBe(200)
    await closed(socket)
    expect(await watch.next()).toMatchObject({ type: 'DELETED', object: { metadata: { name } } })
    expect(await audited(lab, 'deleted')).toBe(true)
    expect((await admin.get(sessions)).object).toMatchObject({ items: [] })
    watch.close()
  })

  test('a watch goes on where a list has ended, and says when that is too long ago', async () => {
    const { path, ann, lab } = await openTunnels()
    const admin = await lab.server.admin()
    const { resourceVersion } = (await admin.get(sessions)).object.metadata
    const socket = await websocket(ann, path)
    await once(socket, 'data')
    const watch = await admin.watch(`${sessions}?watch=true&resourceVersion=${resourceVersion}`)
    expect(await watch.next()).toMatchObject({ type: 'ADDED' })
    const old = await admin.watch(`${sessions}?watch=true&resourceVersion=1`)
    expect(await old.next()).toMatchObject({ type: 'ERROR', object: { reason: 'Expired' } })
    expect(await old.ended).toBe(true)
    watch.close()
    socket.destroy()
  })

  test('a request is shown once it has lasted a second', async () => {
    const { path, ann, lab } = await open()
    const admin = await lab.server.admin()
    const response = await answered(ann, `${path}/stream`)
    const shown = await eventually('it is shown', async () => {
      const { items } = (await admin.get(sessions)).object as unknown as { items: object[] }
      return items[0]
    })
    expect(shown).toMatchObject({ spec: { type: 'Request', user: 'ann' } })
    response.destroy()
    expect(await audited(lab, 'client-gone')).toBe(true)
  })

  test.each(['POST', 'PUT', 'PATCH'])('%s is not allowed', async (method) => {
    const { lab } = await openTunnels()
    const admin = await lab.server.admin()
    const target = method === 'POST' ? sessions : `${sessions}/x`
    expect((await admin.request(target, { method, body: {} })).status).toBe(405)
    expect((await admin.delete(sessions)).status).toBe(405)
  })

  test('discovery and OpenAPI know them', async () => {
    const { lab } = await openTunnels()
    const admin = await lab.server.admin()
    const { object } = await admin.get('/apis/addon.sallyport.dev/v1alpha1')
    expect(object['resources']).toMatchObject([
      { name: 'sessions', kind: 'Session', verbs: ['delete', 'get', 'list', 'watch'] },
    ])
    for (const path of [
      '/openapi/v2',
      '/openapi/v3',
      '/openapi/v3/api/v1',
      '/openapi/v3/apis/addon.sallyport.dev/v1alpha1',
    ])
      expect([path, (await admin.get(path)).status]).toEqual([path, 200])
  })
})
