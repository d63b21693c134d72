import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { answerIn, WireBody } from './backend-answer.ts'

const exchange = { hold: () => {}, resume: () => {}, cancel: () => {} }

/** Bodies by each way in which a backend is asked: all chunks arrive before anything is read. */
const bodies: Record<string, (chunks: readonly Buffer[]) => Readable | Buffer> = {
  'by the wire': (chunks) => {
    const body = new WireBody(exchange)
    for (const chunk of chunks) body.receive(chunk)
    body.finish()
    return body
  },
  "by Node's client": (chunks) => {
    const message = Object.assign(new Readable({ read: () => {} }), { rawHeaders: [] })
    const { body } = answerIn(message as unknown as IncomingMessage)
    for (const chunk of chunks) message.push(chunk)
    message.push(null)
    return body
  },
}

test.each(Object.keys(bodies))(
  'a response in single bytes waits for its client in few pieces, %s [SEC-R607]',
  async (way) => {
    const sent = Buffer.alloc(100_000, 'abcdefghijk')
    const body = bodies[way]?.(Array.from(sent, (byte) => Buffer.from([byte])))
    if (!(body instanceof Readable)) throw new Error('the body is complete')
    const pieces: Buffer[] = []
    body.on('data', (piece: Buffer) => pieces.push(piece))
    await once(body, 'end')
    expect([Buffer.concat(pieces).equals(sent), pieces.length < 20]).toEqual([true, true])
  },
)
