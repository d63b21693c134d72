import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Guard, openVerifier, staticAudiences } from '../../src/addon/guard/index.ts'
import { silentLogger, systemClock } from '../../src/core/index.ts'
import { eventually } from '../support/eventually.ts'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

const handshake = [
  'GET /api/v1/namespaces/default/services/live/proxy/socket?add-auth=true HTTP/1.1',
  'Host: api',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sallyport-Renew-Tunnel: of-somebody-else',
  '',
  '',
].join('\r\n')

describe.skipIf(outwardAddress === undefined)('a WebSocket through proxy and guard', () => {
  let lab: ServiceProxyLab
  let guard: Guard
  const ended = new AbortController()
  const accessLog: string[] = []
  const upgraded: { readonly headers: IncomingMessage['headers']; readonly socket: Duplex }[] = []
  const addon = createServer((_request, response) => response.end('the add-on was asked'))

  beforeAll(async () => {
    lab = await ServiceProxyLab.open(['--addon-recheck-period', '100ms'])
    addon.on('upgrade', (request, socket) => {
      socket.on('error', () => {})
      upgraded.push({ headers: request.headers, socket })
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
          'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
      )
      socket.on('data', (chunk) => socket.write(chunk))
      socket.on('end', () => socket.end())
    })
    addon.listen(0, '127.0.0.1')
    await once(addon, 'listening')
    const caFile = join(lab.server.dataDirectory, 'pki', 'ca.crt')
    const host = { clock: systemClock, log: silentLogger, signal: ended.signal }
    const verifier = await openVerifier({ caFile }, host)
    guard = new Guard({
      addresses: [outwardAddress ?? ''],
      ports: [
        {
          listenPort: 0,
          forward: { host: '127.0.0.1', port: (addon.address() as AddressInfo).port },
        },
      ],
      health: { port: 0 },
      verifier,
      audiences: staticAudiences(['default/live']),
      accessLog: { level: 'all', write: (lines) => void accessLog.push(lines) },
      clock: systemClock,
      log: silentLogger,
    })
    await guard.start()
    const [place = ''] = guard.places
    await lab.addon('live', { port: Number(place.split(':').at(-1)) })
  })

  afterAll(async () => {
    ended.abort()
    await guard.stop(AbortSignal.abort())
    addon.close()
    await lab.close()
  })

  test('outlives its token while its user may go on, and tells the client nothing of it [ADDON-G4]', async () => {
    const socket = await (await lab.server.admin()).socket()
    socket.write(handshake)
    const [head] = await once(socket, 'data')
    expect(String(head)).toMatch(/^HTTP\/1.1 101 /)
    expect(String(head)).not.toMatch(/sallyport-tunnel/i)
    expect(upgraded[0]?.headers['sallyport-renew-tunnel']).toBeUndefined()
    const renewals = (): number => accessLog.join('').match(/"status":204/g)?.length ?? 0
    await eventually('a renewal reaches the guard', () => renewals() >= 2)
    socket.write('still here')
    expect(String((await once(socket, 'data'))[0])).toBe('still here')
    socket.destroy()
    const { socket: far } = upgraded[0] ?? {}
    if (far && !far.destroyed) await once(far, 'close')
  })
})
