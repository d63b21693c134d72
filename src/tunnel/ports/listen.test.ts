import { once } from 'node:events'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listen } from './listen.ts'

let directory: string
const servers: Server[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-listen-'))
})

afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  await rm(directory, { recursive: true })
})

function listenOn(path: string, replace = true): Promise<string> {
  const server = createServer((socket) => socket.end('here'))
  servers.push(server)
  return listen(server, { path, replace }, 'clients')
}

test('[TUN-W21] a socket is for its owner and group, and one that was left behind is replaced', async () => {
  const path = join(directory, 's')
  await listenOn(path)
  expect((await stat(path)).mode & 0o777).toBe(0o770)
  await listenOn(path)
  const client = connect(path)
  expect(String((await once(client, 'data'))[0])).toBe('here')
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
  ['a name that is too long', 'x'.repeat(200), 'LISTEN_FAILED', /not too long/],
])('[TUN-W21] %s is told with what to do', async (_name, name, code, hint) => {
  await listenOn(join(directory, 'taken'))
  await writeFile(join(directory, 'file'), '')
  const failed = listenOn(join(directory, name), false)
  await expect(failed).rejects.toMatchObject({ code, hint: expect.stringMatching(hint) })
})
