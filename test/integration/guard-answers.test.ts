import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type GuardLab, sendRaw, startGuardLab } from '../../src/addon/guard/guard-lab.suite.ts'
import { auth, closeOf, head, openRaw, websocket } from '../support/guard-connection.ts'

const labs: GuardLab[] = []
const start: typeof startGuardLab = async (options) => {
  const lab = await startGuardLab(options)
  labs.push(lab)
  return lab
}
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.stop()
})

describe('answers', () => {
  test('of events arrive as they are sent [ADDON-G4]', async () => {
    const lab = await start()
    let send = (_event: string): void => {}
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
      send = (event) => void response.write(`data: ${event}\n\n`)
    }
    const { socket, heard } = await openRaw(lab.port)
    socket.write(head('GET / HTTP/1.1', auth(lab)))
    await vi.waitFor(() => expect(heard()).toContain('text/event-stream'))
    send('first')
    await vi.waitFor(() => expect(heard()).toContain('data: first'))
    send('second')
    await vi.waitFor(() => expect(heard()).toContain('data: second'))
    socket.destroy()
  })

  test('that redirect are passed on and never followed [ADDON-T54]', async () => {
    const lab = await start()
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(302, { Location: 'http://169.254.169.254/' }).end()
    }
    const { status, text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect([status, lab.addon.seen.length]).toEqual([302, 1])
    expect(text).toContain('Location: http://169.254.169.254/')
  })

  test.each([
    [undefined, 'no-cache, private'],
    ['public, max-age=60', 'private, max-age=60'],
    ['max-age=60', 'private, max-age=60'],
    ['s-maxage=9, max-age=60', 'private, max-age=60'],
    ['no-store', 'no-store'],
    ['private="set-cookie", max-age=60', 'private, max-age=60'],
    ['max-age=60, x="no-store', 'private, max-age=60, x="no-store'],
  ])('with Cache-Control %s are for one user: %s [ADDON-T59]', async (said, expected) => {
    const lab = await start()
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(200, said === undefined ? {} : { 'Cache-Control': said }).end('x')
    }
    const { text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(/\r\nCache-Control: (.*)\r\n/i.exec(text)?.[1]).toBe(expected)
  })

  test.each([
    ['GET', ''],
    ['POST', 'x'],
  ])(
    'to %s have the trailers that they announce, if they decide nothing [ADDON-X5]',
    async (method, body) => {
      const lab = await start()
      const trailers = 'Grpc-Status: 0\r\nSet-Cookie: a=b\r\nX-Late: 1\r\n'
      lab.addon.onRequest = (request) =>
        void request.socket.write(
          `HTTP/1.1 200 OK\r\nTrailer: Grpc-Status, Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${trailers}\r\n`,
        )
      const lines = ['TE: trailers', 'Connection: close', `Content-Length: ${body.length}`]
      const asked = head(`${method} / HTTP/1.1`, auth(lab), ...lines.slice(0, body ? 3 : 2))
      const { text } = await sendRaw(lab.port, asked + body, { untilClose: true })
      expect(text).toMatch(/\r\nTrailer: Grpc-Status\r\n/)
      expect(text.endsWith('2\r\nhi\r\n0\r\nGrpc-Status: 0\r\n\r\n')).toBe(true)
      expect(lab.addon.values('te')).toEqual(['trailers'])
    },
  )

  test.each([204, 304])(
    'of %i have no trailers, whatever they announce [ADDON-X5]',
    async (code) => {
      const lab = await start()
      lab.addon.onRequest = ({ socket }) =>
        void socket.write(
          `HTTP/1.1 ${code} X\r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n`,
        )
      for (const lines of [[], ['Content-Length: 0']]) {
        const { status, text } = await sendRaw(
          lab.port,
          head('GET / HTTP/1.1', auth(lab), ...lines),
        )
        expect([status, text.includes('Digest')]).toEqual([code, false])
      }
    },
  )

  test('with a status that is none are a 502, to an upgrade too [ADDON-X3]', async () => {
    const lab = await start()
    const bytes = 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'
    lab.addon.onRequest = ({ socket }) => void socket.end(bytes)
    lab.addon.onUpgrade = (_request, socket) => void socket.end(bytes)
    for (const lines of [[], ['Content-Length: 0'], websocket]) {
      const { body } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab), ...lines))
      expect(JSON.parse(body)).toMatchObject({
        code: 502,
        reason: expect.stringMatching(/^addon-/),
      })
    }
  })

  test('keep the last letter of a header in UTF-8', async () => {
    const lab = await start()
    lab.addon.onRequest = (request) =>
      void request.socket.write(
        'HTTP/1.1 204 No Content\r\nX-A: \t voil\xc3\xa0 \r\n\r\n',
        'latin1',
      )
    const { text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(text).toContain('\r\nX-A: voil\xc3\xa0\r\n')
  })

  test.each(['GET', 'POST'])(
    'to %s that are hints without end are a 502 [ADDON-X3]',
    async (method) => {
      const lab = await start()
      lab.addon.onRequest = ({ socket }) => {
        const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(20)
        const more = (): void => {
          while (!socket.destroyed && socket.write(hints));
        }
        socket.on('drain', more).on('error', () => {})
        more()
      }
      const { status } = await sendRaw(
        lab.port,
        head(`${method} / HTTP/1.1`, auth(lab), 'Content-Length: 0'),
      )
      expect(status).toBe(502)
    },
  )

  test('of another protocol that nobody asked for are a 502 [ADDON-X3]', async () => {
    const lab = await start()
    lab.addon.onRequest = ({ socket }) =>
      void socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n',
      )
    for (const lines of [[], ['Content-Length: 0']])
      expect((await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab), ...lines))).status).toBe(
        502,
      )
  })

  test('that come before the request was read end it, whoever goes on sending [ADDON-X9]', async () => {
    const early = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno')
      })
    })
    early.listen(0, '127.0.0.1')
    await once(early, 'listening')
    const { port } = early.address() as AddressInfo
    const guarded = await start({
      ports: [{ listenPort: 0, forward: { host: '127.0.0.1', port } }],
      limits: { lingerMs: 100 },
    })
    const token = `Authorization: Bearer ${guarded.token()}`
    const { socket, heard } = await openRaw(guarded.port)
    socket.write(head('POST / HTTP/1.1', token, `Content-Length: ${2 ** 30}`))
    const piece = Buffer.alloc(2 ** 20)
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    more()
    await closeOf(socket)
    expect(heard()).toMatch(/^HTTP\/1\.1 413 [^]*no$/)
    early.close()
  })

  test('that are not HTTP, or none, are a 502 with a reason', async () => {
    const lab = await start()
    lab.addon.onRequest = (request) => void request.socket.end('SSH-2.0-x\r\n')
    const { status, body } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect([status, JSON.parse(body)]).toMatchObject([502, { reason: 'addon-answer-unusable' }])
    lab.addon.onRequest = (request) => void request.socket.destroy()
    const { body: second } = await sendRaw(lab.port, head('POST / HTTP/1.1', auth(lab)))
    expect(JSON.parse(second)).toMatchObject({ reason: 'addon-broke-off' })
    await lab.addon.stop()
    const { body: third } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(JSON.parse(third)).toMatchObject({ code: 502, reason: 'addon-unreachable' })
    await lab.addon.start()
  })
})
