import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GuardLab, startGuardLab } from '../../../src/addon/guard/guard-lab.suite.ts'
import { freePort } from '../../../src/cli/up/addon-process.ts'
import { eventually } from '../../support/eventually.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { pathOrReason } from '../../support/peers.ts'

// A calendar server that believes a header, as many applications do. That is safe behind the guard alone.
const cache = process.env['SALLYPORT_PEERS'] ?? join(homedir(), '.cache/sallyport-peers')
const path = join(cache, 'radicale/bin/radicale')
const radicale = pathOrReason(
  existsSync(path) ? { path } : { missing: 'Radicale is not installed; .ci/run does that' },
)

let directory: string
let program: LoggedProcess
let lab: GuardLab

beforeAll(async () => {
  if (radicale === undefined) return
  directory = await mkdtemp(join(tmpdir(), 'sallyport-radicale-'))
  const port = await freePort()
  const serving = ['--config', '', '--server-hosts', `127.0.0.1:${port}`]
  const rules = ['--auth-type', 'http_x_remote_user', '--rights-type', 'owner_only']
  const storing = ['--storage-filesystem-folder', directory]
  program = new LoggedProcess(radicale, [...serving, ...rules, ...storing])
  lab = await startGuardLab({
    ports: [{ listenPort: 0, forward: { host: '127.0.0.1', port } }],
    output: { userHeader: 'X-Remote-User' },
  })
  await eventually('Radicale answers', async () => (await ask('bob', 'GET', '/')).status !== 502)
})

afterAll(async () => {
  if (radicale === undefined) return
  await lab.stop()
  await program.stop()
  await rm(directory, { recursive: true, force: true })
})

const question = '<propfind xmlns="DAV:"><prop><current-user-principal/></prop></propfind>'

/** Asks the application through the guard, as a user or as nobody, with headers of one's own. */
function ask(
  user: string | undefined,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const token = user && lab.token({ claims: { sub: user } })
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port: lab.port,
        method,
        path,
        headers: { ...headers, ...(token && { Authorization: `Bearer ${token}` }), Depth: '0' },
      },
      (response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += String(chunk)
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      },
    )
    asked.on('error', reject)
    asked.end(method === 'PROPFIND' ? question : undefined)
  })
}

describe.skipIf(radicale === undefined)('Radicale, unmodified, behind the guard', () => {
  test.each(['bob', 'jane'])('knows its user: %s [ADDON-I4, ADDON-R29]', async (user) => {
    const { status, body } = await ask(user, 'PROPFIND', '/')
    expect(status).toBe(207)
    expect(body).toContain(`/${user}/`)
  })

  test('keeps what is one user’s from another [ADDON-I4]', async () => {
    expect((await ask('bob', 'MKCALENDAR', '/bob/notes/')).status).toBe(201)
    expect((await ask('bob', 'PROPFIND', '/bob/notes/')).status).toBe(207)
    expect((await ask('jane', 'PROPFIND', '/bob/notes/')).status).toBe(403)
  })

  test('is not told what a client says of itself [ADDON-I4]', async () => {
    const claims = { 'X-Remote-User': 'bob', X_Remote_User: 'bob', 'x-remote.user': 'bob' }
    expect((await ask(undefined, 'PROPFIND', '/', claims)).status).toBe(403)
    const { body } = await ask('jane', 'PROPFIND', '/', claims)
    expect(body).toContain('/jane/')
    expect(body).not.toContain('/bob/')
  })
})
