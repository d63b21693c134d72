import { expect, test } from 'vitest'
import type { Exchange } from './exchange.ts'
import { OpenExchanges } from './exchange.ts'

interface Stream {
  readonly name: string
  readonly longRunning: boolean
  index: number
  abort(why: Error): void
}

function lab() {
  const open = new OpenExchanges()
  const ended: string[] = []
  const stream = (name: string, longRunning = true): Stream & Exchange => {
    const own: Stream = {
      name,
      longRunning,
      index: -1,
      abort: () => {
        ended.push(name)
        open.delete(own as Stream & Exchange)
      },
    }
    return own as Stream & Exchange // all that OpenExchanges looks at
  }
  return { open, ended, stream }
}

test('whatever the order of leaving, those that stay are known', () => {
  const { open, ended, stream } = lab()
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => stream(name))
  for (const each of [a, b, c, d]) open.add(each!)
  open.delete(b!)
  open.delete(a!)
  open.delete(a!) // twice does not take another one's place
  expect(open.longRunning()).toBe(2)
  open.endStreams(new Error('over'))
  expect(ended.sort()).toEqual(['c', 'd'])
})

test('streams that leave while they are being ended do not save others from it', () => {
  const { open, ended, stream } = lab()
  for (const name of ['a', 'b', 'c', 'd', 'e']) open.add(stream(name))
  open.endStreams(new Error('over'))
  expect(ended).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('idle comes when the last one has left', async () => {
  const { open, stream } = lab()
  const [a, b] = [stream('a', false), stream('b', false)]
  open.add(a)
  open.add(b)
  let isIdle = false
  const idle = open.idle().then(() => {
    isIdle = true
  })
  open.delete(a)
  await Promise.resolve()
  expect(isIdle).toBe(false)
  open.delete(b)
  await idle
})
