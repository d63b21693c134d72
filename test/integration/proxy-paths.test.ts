import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { filterDefaults } from '../../src/local-proxy/options/index.ts'
import { type LabProxy, ProxyLab } from '../../src/local-proxy/proxy-lab.suite.ts'

let lab: ProxyLab
let proxy: LabProxy
let directory: string
beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy()
  directory = await mkdtemp(join(tmpdir(), 'proxy-'))
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(async () => {
  await lab.close()
  await rm(directory, { recursive: true, force: true })
})

describe('[CRED-P2] the filter', () => {
  const pod = '/api/v1/namespaces/a/pods/b'

  test.each([`${pod}/exec`, `${pod}/attach`, `${pod}/portforward`, `${pod}/e%78ec?command=sh`])(
    'rejects %s',
    async (path) => {
      for (const method of ['GET', 'POST'])
        expect((await proxy.ask(path, [], method)).status).toBe(403)
      const { head } = await proxy.handshake(path)
      expect(head.status).toBe(403)
      expect(lab.api.seen).toEqual([])
    },
  )

  test('rejects a path also if it is accepted, then a method, then what is not accepted', async () => {
    const filtered = await lab.proxy({
      filter: {
        ...filterDefaults,
        rejectPaths: '^/no',
        rejectMethods: 'POST,PUT',
        acceptPaths: '^/no,^/yes',
      },
    })
    const tried = async (path: string, method: string): Promise<string> => {
      const { status, body } = await filtered.ask(path, [], method)
      return `${status} ${/--[a-z-]+/.exec(body)?.[0] ?? ''}`
    }
    expect(await tried('/no', 'POST')).toBe('403 --reject-paths')
    expect(await tried('/yes', 'POST')).toBe('403 --reject-methods')
    expect(await tried('/other', 'GET')).toBe('403 --accept-paths')
    expect(await tried('/yes', 'GET')).toBe('200 ')
  })

  test('can be switched off', async () => {
    const open = await lab.unfiltered()
    const answer = await open.ask(`${pod}/exec`, ['Host: any.example.com', 'Origin: https://x.y'])
    expect(answer.status).toBe(200)
    expect((await open.ask('/x', ['Authorization: Bearer evil'])).status).toBe(403)
    expect(lab.api.last.rawHeaders.join()).not.toContain('evil')
  })

  test('takes hosts that the user names', async () => {
    const named = await lab.proxy({
      filter: { ...filterDefaults, acceptHosts: String.raw`^dev\.lan$` },
    })
    expect((await named.ask('/x', ['Host: dev.lan:8001'])).status).toBe(200)
    expect((await named.ask('/x', ['Host: localhost'])).status).toBe(403)
    expect((await named.ask('/x', ['Host: a.b.localhost'])).status).toBe(403)
  })
})

describe('[CRED-P3] paths of the proxy', () => {
  test('an API prefix is taken off, and nothing else is served', async () => {
    const custom = await lab.proxy({ apiPrefix: '/custom' })
    await custom.ask('/custom/api/v1?x=1')
    expect(lab.api.last.url).toBe('/api/v1?x=1')
    expect((await custom.ask('/api/v1')).status).toBe(404)
    expect((await custom.ask('/custom')).headers['location']).toBe('/custom/')
  })

  test.each([
    [true, '/clusters/c1/api'],
    [false, '/api'],
  ])('the path of the server is put before with --append-server-path=%j', async (append, url) => {
    const behind = await lab.proxy({ appendServerPath: append }, '/clusters/c1')
    await behind.ask('/api')
    expect(lab.api.last.url).toBe(url)
  })

  describe('static files', () => {
    let files: LabProxy

    beforeAll(async () => {
      const www = join(directory, 'www')
      await mkdir(join(www, 'sub'), { recursive: true })
      await mkdir(join(www, 'empty'))
      await Promise.all([
        writeFile(join(www, 'a.js'), '0123456789'),
        writeFile(join(www, 'sub', 'index.html'), '<p>sub'),
        writeFile(join(www, 'empty', '<b>&.txt'), 'x'),
        writeFile(join(directory, 'secret'), 'secret'),
        symlink(join(directory, 'secret'), join(www, 'out')),
        symlink(join(www, 'a.js'), join(www, 'in.js')),
      ])
      files = await lab.proxy({ www: { directory: www, prefix: '/static' } })
    })

    test.each([
      ['/static/a.js', 200, '0123456789'],
      ['/static/in.js', 200, '0123456789'],
      ['/static/sub/', 200, '<p>sub'],
      ['/static/nothing', 404, '404 page not found\n'],
      ['/static/out', 404, '404 page not found\n'],
      ['/static/%2e%2e/secret', 404, '404 page not found\n'],
      ['/static/..%2fsecret', 404, '404 page not found\n'],
      ['/static/a.js%00.txt', 404, '404 page not found\n'],
    ])('%s: %i', async (path, status, body) => {
      expect(await files.ask(path)).toMatchObject({ status, body })
    })

    test.each([
      ['/static/sub', 'sub/'],
      ['/static/a.js/', '../a.js'],
      ['/static/sub/index.html', './'],
    ])('%s moves to %s', async (path, location) => {
      expect(await files.ask(path)).toMatchObject({ status: 301, headers: { location } })
    })

    test('have a type, a date, and parts', async () => {
      const whole = await files.ask('/static/a.js')
      expect(whole.headers['content-type']).toBe('text/javascript; charset=utf-8')
      const part = await files.ask('/static/a.js', ['Range: bytes=2-4'])
      expect(part).toMatchObject({ status: 206, body: '234' })
      expect(part.headers['content-range']).toBe('bytes 2-4/10')
      const since = `If-Modified-Since: ${whole.headers['last-modified']}`
      expect((await files.ask('/static/a.js', [since])).status).toBe(304)
      expect((await files.ask('/static/a.js', ['Range: bytes=99-'])).status).toBe(416)
    })

    test('are listed where there is no index, with their names escaped', async () => {
      const { body } = await files.ask('/static/empty/')
      expect(body).toContain('<a href="./%3Cb%3E%26.txt">&lt;b&gt;&amp;.txt</a>')
    })

    test('are only read', async () => {
      expect((await files.ask('/static/a.js', [], 'POST')).status).toBe(405)
    })
  })
})
