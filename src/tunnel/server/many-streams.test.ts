import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { labClient } from '../../http/tls-lab.suite.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'

let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
  await lab.start()
})
afterEach(() => lab.close())

const headers = {
  ':method': 'POST',
  ':path': '/AgentService/Connect',
  'content-type': 'application/grpc',
  te: 'trailers',
  agentid: 'a',
}

/** Resolves when the stream has come to its end, in whatever way. */
const over = (stream: ClientHttp2Stream): Promise<void> =>
  new Promise((resolve) => {
    stream.on('error', () => {}).once('close', resolve)
    stream.resume()
  })

/** Every way in which a stream can end at once. */
const ways: Readonly<Record<string, (session: ClientHttp2Session) => Promise<void>>> = {
  'are reset': (session) => {
    const stream = session.request(headers)
    stream.once('response', () => stream.close(constants.NGHTTP2_CANCEL))
    return over(stream)
  },
  'end with their headers': (session) => over(session.request(headers, { endStream: true })),
  'are refused': (session) => over(session.request({ ...headers, agentid: '' })),
  'are for another service': (session) => over(session.request({ ...headers, ':path': '/x/y' })),
}

test.each(Object.entries(ways))(
  '[SEC-R751] an agent may open 100 streams in ten seconds that %s',
  async (_name, open) => {
    const { cert, key } = await labClient(lab.ca, 'agent')
    const session = connect(`https://127.0.0.1:${lab.server.ports.agents}`, {
      ca: lab.ca.bundlePem,
      cert,
      key,
      checkServerIdentity: () => undefined,
    })
    lab.closeLater(() => session.destroy())
    const goAways: number[] = []
    session.on('error', () => {}).on('goaway', (code) => goAways.push(code))
    await once(session, 'connect')
    let count = 0
    for (; count < 150 && !session.closed && !session.destroyed; count++) await open(session)
    expect(count).toBeGreaterThanOrEqual(100)
    expect(count).toBeLessThan(110)
    expect(goAways).toEqual([constants.NGHTTP2_ENHANCE_YOUR_CALM])
  },
)
