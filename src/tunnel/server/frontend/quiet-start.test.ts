import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import type { ByteStream } from '../../link/index.ts'
import { quietStart } from './quiet-start.ts'

const never = 60_000

/** A client's end that notes what it is sent. */
class Client extends Duplex {
  sent = ''

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent += chunk.toString()
    this.emit('sent')
    done()
  }
}

function started(forMs: number): { stream: ByteStream; client: Client; heard: string[] } {
  const client = new Client({ allowHalfOpen: true })
  const stream = quietStart(client, forMs)
  const heard: string[] = []
  stream.start({
    data: (chunk) => {
      heard.push(chunk.toString())
      stream.consumed(chunk.length)
    },
    finished: () => heard.push('finished'),
    drained: () => {},
    closed: () => heard.push('closed'),
  })
  return { stream, client, heard }
}

/** Until everything that is ready has happened. */
const turn = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test('[TUN-W23] nothing is sent to a client before it has spoken, and all of it after', async () => {
  const { stream, client, heard } = started(never)
  stream.write(Buffer.from('220 '))
  stream.write(Buffer.from('welcome'))
  await turn()
  expect([client.sent, stream.backlog]).toEqual(['', 11])
  client.push('hello')
  await once(client, 'sent')
  await turn()
  expect([client.sent, stream.backlog, heard]).toEqual(['220 welcome', 0, ['hello']])
  stream.write(Buffer.from('!'))
  await turn()
  expect(client.sent).toBe('220 welcome!')
  stream.close()
})

test('[TUN-W23] a client that says nothing gets it after a while', async () => {
  const { stream, client } = started(10)
  stream.write(Buffer.from('220 welcome'))
  await once(client, 'sent')
  expect(client.sent).toBe('220 welcome')
  stream.close()
})

test('[TUN-U15] what was held leaves before an orderly end, once, however often it is closed', async () => {
  const { stream, client } = started(never)
  stream.write(Buffer.from('all of it'))
  stream.finish()
  stream.close()
  stream.close()
  if (!client.writableFinished) await once(client, 'finish')
  expect(client.sent).toBe('all of it')
  client.push(null)
  client.destroy()
})

test('[TUN-U15] a failure cuts the client, and nothing is sent', async () => {
  const { stream, client, heard } = started(never)
  stream.write(Buffer.from('torn'))
  stream.close(new Error('the agent is gone'))
  if (!client.closed) await once(client, 'close')
  await turn()
  expect([client.sent, heard]).toEqual(['', ['closed']])
})
