import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import type { Leg } from '../../link/index.ts'
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

function started(forMs: number): { leg: Leg; client: Client; heard: string[] } {
  const client = new Client({ allowHalfOpen: true })
  const leg = quietStart(client, forMs)
  const heard: string[] = []
  leg.start({
    data: (chunk) => {
      heard.push(chunk.toString())
      leg.consumed(chunk.length)
    },
    finished: () => heard.push('finished'),
    drained: () => {},
    closed: () => heard.push('closed'),
  })
  return { leg, client, heard }
}

/** Until everything that is ready has happened. */
const turn = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test('[TUN-W23] nothing is sent to a client before it has spoken, and all of it after', async () => {
  const { leg, client, heard } = started(never)
  leg.write(Buffer.from('220 '))
  leg.write(Buffer.from('welcome'))
  await turn()
  expect([client.sent, leg.backlog]).toEqual(['', 11])
  client.push('hello')
  await once(client, 'sent')
  await turn()
  expect([client.sent, leg.backlog, heard]).toEqual(['220 welcome', 0, ['hello']])
  leg.write(Buffer.from('!'))
  await turn()
  expect(client.sent).toBe('220 welcome!')
  leg.close()
})

test('[TUN-W23] a client that says nothing gets it after a while', async () => {
  const { leg, client } = started(10)
  leg.write(Buffer.from('220 welcome'))
  await once(client, 'sent')
  expect(client.sent).toBe('220 welcome')
  leg.close()
})

test('[TUN-U15] what was held leaves before an orderly end, once, however often it is closed', async () => {
  const { leg, client } = started(never)
  leg.write(Buffer.from('all of it'))
  leg.finish()
  leg.close()
  leg.close()
  if (!client.writableFinished) await once(client, 'finish')
  expect(client.sent).toBe('all of it')
  client.push(null)
  client.destroy()
})

test('[TUN-U15] a failure cuts the client, and nothing is sent', async () => {
  const { leg, client, heard } = started(never)
  leg.write(Buffer.from('torn'))
  leg.close(new Error('the agent is gone'))
  if (!client.closed) await once(client, 'close')
  await turn()
  expect([client.sent, heard]).toEqual(['', ['closed']])
})
