import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listen, stopListening } from './listen.ts'

let directory: string
const servers: Server[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-listen-'))
})

afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  await rm(directory, { recursive: true })
})

async function listenOn(path: string, replace = true, word = 'here'): Promise<Server> {
  const server = createServer((socket) => socket.end(word))
  servers.push(server)
  expect(await listen(server, { path, replace }, 'clients')).toBe(path)
  return server
}

async function wordAt(path: string): Promise<string> {
  const client = connect(path)
  const [word] = (await once(client, 'data')) as [Buffer]
  return word.toString()
}

test('[TUN-W21] a socket is for its owner and group, and one that was left behind is replaced', async () => {
  const path = join(directory, 's')
  await listenOn(path)
  expect((await stat(path)).mode & 0o777).toBe(0o770)
  await listenOn(path)
  expect(await wordAt(path)).toBe('here')
  expect(await readdir(directory)).toEqual(['s'])
})

test('[TUN-W21] a listener that ends takes its socket away at once, and not the one that has taken its place', async () => {
  const path = join(directory, 's')
  const old = await listenOn(path, true, 'old')
  const next = await listenOn(path, true, 'next')
  await stopListening(old)
  expect(await wordAt(path)).toBe('next')
  const stopped = stopListening(next)
  expect(existsSync(path)).toBe(false)
  await stopped
  expect(await readdir(directory)).toEqual([])
})

test.each([
  [
    'a socket that must not be replaced',
    'taken',
    'SOCKET_PATH_TAKEN',
    /--delete-existing-uds-file/,
  ],
  ['a file that is no socket', 'file', 'SOCKET_PATH_TAKEN', /remove the file yourself/],
  ['a path below a file', 'file/s', 'LISTEN_FAILED', /a directory that exists/],
  ['a directory that is not there', 'none/s', 'LISTEN_FAILED', /a directory that exists/],
  ['a name that is too long', 'x'.repeat(200), 'LISTEN_FAILED', /bytes at most/],
])('[TUN-W21] %s is told with what to do', async (_name, name, code, hint) => {
  await listenOn(join(directory, 'taken'))
  await writeFile(join(directory, 'file'), '')
  const failed = listenOn(join(directory, name), false)
  await expect(failed).rejects.toMatchObject({ code, hint: expect.stringMatching(hint) })
})
