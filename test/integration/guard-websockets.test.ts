import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type GuardLab,
  type LabAddon,
  sendRaw,
  startGuardLab,
} from '../../src/addon/guard/guard-lab.suite.ts'
import {
  auth,
  closeOf,
  head,
  openRaw,
  websocket,
  websocketKey,
} from '../support/guard-connection.ts'

const labs: GuardLab[] = []
const start: typeof startGuardLab = async (options) => {
  const lab = await startGuardLab(options)
  labs.push(lab)
  return lab
}
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.stop()
})

const accepted = createHash('sha1')
  .update(`${websocketKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest('base64')

/** An add-on that speaks: it says hello and sends everything back. */
function echoing(addon: LabAddon): Duplex[] {
  const joined: Duplex[] = []
  addon.onUpgrade = (request, socket) => {
    joined.push(socket)
    const user = String(request.headers['x-authenticated-user'])
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\nhello ${user} at ${request.url};`,
    )
    socket.pipe(socket)
  }
  return joined
}

async function openTunnel(lab: GuardLab, token = auth(lab)) {
  const tunnel = await openRaw(lab.port)
  tunnel.socket.write(head('GET /ws?a=b HTTP/1.1', token, ...websocket))
  await vi.waitFor(() => expect(tunnel.heard()).toContain(';'))
  return { ...tunnel, id: /\r\nSallyport-Tunnel: (\w+)/.exec(tunnel.heard())?.[1] ?? '' }
}

describe('a WebSocket', () => {
  test('reaches the add-on with its user and its query, both ways [ADDON-G4]', async () => {
    const lab = await start()
    echoing(lab.addon)
    const { socket, heard } = await openTunnel(lab)
    expect(heard()).toMatch(/^HTTP\/1\.1 101 /)
    expect(heard()).toContain('hello bob at /ws?a=b;')
    socket.write('ping')
    await vi.waitFor(() => expect(heard()).toContain('ping'))
    socket.end()
    await closeOf(socket)
  })

  test.each<readonly [string, string, number, readonly string[]]>([
    [
      'T44',
      'h2c',
      400,
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
    ],
    ['T45', 'another protocol', 400, ['Connection: Upgrade', 'Upgrade: foo']],
    ['T45', 'two protocols', 400, [...websocket, 'Upgrade: h2c']],
    ['T45', 'no key', 400, websocket.slice(0, 3)],
    [
      'T45',
      'version 12',
      426,
      [...websocket.slice(0, 2), 'Sec-WebSocket-Version: 12', `Sec-WebSocket-Key: ${websocketKey}`],
    ],
    ['T45', 'a body', 400, [...websocket, 'Content-Length: 5']],
  ])('[ADDON-%s] %s is refused without a connection: %i', async (_number, _what, status, lines) => {
    const lab = await start()
    const { text, closed } = await sendRaw(
      lab.port,
      `${head('GET / HTTP/1.1', auth(lab), ...lines)}PRI * HTTP/2.0`,
      { untilClose: true },
    )
    expect([Number(text.slice(9, 12)), closed, lab.addon.connections]).toEqual([status, true, 0])
  })

  test('without a token is a 403 without a connection [ADDON-R32]', async () => {
    const lab = await start()
    const { status, body } = await sendRaw(lab.port, head('GET / HTTP/1.1', ...websocket))
    expect([status, JSON.parse(body)]).toMatchObject([403, { reason: 'no-token' }])
    expect(lab.addon.connections).toBe(0)
  })

  test.each([200, 401, 426])(
    'that the add-on answers with %i ends there: nothing is smuggled behind it [ADDON-T46, ADDON-T47]',
    async (status) => {
      const lab = await start()
      const behind: string[] = []
      lab.addon.onUpgrade = (_request, socket) => {
        socket.on('data', (chunk: Buffer) => behind.push(String(chunk)))
        socket.write(`HTTP/1.1 ${status} X\r\nContent-Length: 2\r\n\r\nno`)
      }
      const smuggled = head('GET /smuggled HTTP/1.1', 'X-Authenticated-User: root')
      const { text, closed } = await sendRaw(
        lab.port,
        head('GET / HTTP/1.1', auth(lab), ...websocket) + smuggled,
        { untilClose: true },
      )
      expect([Number(text.slice(9, 12)), text.endsWith('no'), closed]).toEqual([status, true, true])
      expect([behind, lab.addon.seen]).toEqual([[], []])
    },
  )

  test('ends when its token ends, at both ends and with a reason [ADDON-T48, ADDON-R43]', async () => {
    const lab = await start()
    const [now] = [Math.floor(lab.clock.now() / 1000)]
    const joined = echoing(lab.addon)
    // The leeway of ten seconds is over in a moment.
    const token = lab.token({ claims: { iat: now - 30, nbf: now - 30, exp: now - 9 } })
    const { socket } = await openTunnel(lab, `Authorization: Bearer ${token}`)
    await closeOf(socket)
    await vi.waitFor(() => expect(joined[0]?.destroyed).toBe(true))
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"token-expired"'))
  })

  test('ends at its maximum age, however fresh its token [ADDON-T48, ADDON-R43]', async () => {
    const lab = await start({ limits: { maxTunnelMs: 300 } })
    const joined = echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    await closeOf(socket)
    await vi.waitFor(() => expect(joined[0]?.destroyed).toBe(true))
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"too-old"'))
  })

  test.each([
    ['says nothing', '', 504],
    ['refuses and never ends', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno', 200],
  ])(
    'that an add-on %s to ends at the maximum age of a request [ADDON-X10]',
    async (_what, said, status) => {
      const lab = await start({ limits: { maxRequestMs: 300 } })
      lab.addon.onUpgrade = (_request, socket) => void (said && socket.write(said))
      const { socket, heard } = await openRaw(lab.port)
      socket.write(head('GET / HTTP/1.1', auth(lab), ...websocket))
      await closeOf(socket)
      expect(heard().slice(9, 12)).toBe(String(status))
    },
  )

  test('whose add-on names it does not have two names', async () => {
    const lab = await start()
    lab.addon.onUpgrade = (_request, socket) =>
      void socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSallyport-Tunnel: x\r\n\r\n;`,
      )
    const { socket, heard } = await openTunnel(lab)
    expect(heard().match(/Sallyport-Tunnel/gi)).toHaveLength(1)
    socket.destroy()
  })

  test('that is idle for too long ends', async () => {
    const lab = await start({ limits: { tunnelIdleMs: 200 } })
    echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    await closeOf(socket)
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"idle"'))
  })

  test('lives on with a fresh token of the same user, and of nobody else [ADDON-G4]', async () => {
    const lab = await start()
    echoing(lab.addon)
    const now = Math.floor(lab.clock.now() / 1000)
    const short = lab.token({ claims: { iat: now - 30, nbf: now - 30, exp: now - 8 } })
    const { socket, heard, id } = await openTunnel(lab, `Authorization: Bearer ${short}`)
    const other = await openTunnel(lab, `Authorization: Bearer ${short}`)
    const renew = (token: string, which = id) =>
      sendRaw(lab.port, head('POST / HTTP/1.1', token, `Sallyport-Renew-Tunnel: ${which}`))
    expect((await renew(auth(lab, 'eve'))).status).toBe(403)
    expect((await renew(auth(lab), 'ffff')).status).toBe(403)
    expect((await renew(auth(lab))).status).toBe(204)
    expect(lab.addon.seen).toEqual([])
    // Another one of the same token has ended by now.
    await closeOf(other.socket)
    socket.write('still here')
    await vi.waitFor(() => expect(heard()).toContain('still here'))
    socket.destroy()
  })

  test('is cut when the guard ends', async () => {
    const lab = await start()
    echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    const closed = closeOf(socket)
    await lab.guard.stop(AbortSignal.timeout(5_000))
    await closed
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"shutting-down"'))
  })
})
