import { chmod, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { labAuthority } from '../../http/tls-lab.suite.ts'
import { discoverCluster } from './discover-cluster.ts'
import { LabCluster } from './discovery-lab.suite.ts'
import type { DiscoveryMethod, DiscoveryOrder, DiscoveryParts } from './options.ts'

let lab: LabCluster
let directory: string
beforeEach(async () => {
  lab = await LabCluster.open()
  directory = await mkdtemp(join(tmpdir(), 'sallyport-discovery-'))
})
afterEach(async () => {
  await lab.close()
  await rm(directory, { recursive: true, force: true })
})

const find = (
  order: Pick<DiscoveryOrder, 'method'> & Partial<DiscoveryOrder>,
  parts: DiscoveryParts = {},
) => discoverCluster({ timeoutMs: 0, ...order }, parts)

describe('by a document', () => {
  const fromFile = async (text: string): Promise<DiscoveryMethod> => {
    const path = join(directory, 'cluster.yaml')
    await writeFile(path, text)
    return { by: 'file', path }
  }
  const fromStream = (...parts: string[]): DiscoveryMethod => ({
    by: 'stream',
    stream: Readable.from(parts.map((part) => Buffer.from(part))),
    name: 'standard input',
  })
  const outOfBand = () => ({
    cluster: { server: lab.address, certificateAuthorityData: lab.ca.bundlePem },
    advertised: lab.address,
    proofs: ['out-of-band'],
    pins: [lab.pin],
    warnings: [],
  })

  test('a file finds the cluster, and nothing is asked but whether it is there [DISC-R12]', async () => {
    expect(await find({ method: await fromFile(lab.kubeconfig) })).toEqual(outOfBand())
    expect(lab.requests.map(({ path }) => path)).toEqual(['/version'])
  })

  test('a stream is read to its end [DISC-R13]', async () => {
    const { kubeconfig } = lab
    const method = fromStream('\uFEFF', kubeconfig.slice(0, 50), kubeconfig.slice(50))
    expect(await find({ method })).toEqual(outOfBand())
  })

  test('a CA beside the file is embedded [DISC-R9]', async () => {
    await writeFile(join(directory, 'ca.crt'), lab.ca.bundlePem)
    const text = lab.kubeconfig.replace(
      /certificate-authority-data: .*/,
      'certificate-authority: ca.crt',
    )
    expect(await find({ method: await fromFile(text) })).toEqual(outOfBand())
  })

  test.each(['cluster.yaml', 'ca.crt'])(
    'a file that other users can write is refused: %s [SEC-R1711]',
    async (name) => {
      await writeFile(join(directory, 'ca.crt'), lab.ca.bundlePem)
      const method = await fromFile(
        lab.kubeconfig.replace(/certificate-authority-data: .*/, 'certificate-authority: ca.crt'),
      )
      const path = join(directory, name)
      await chmod(path, 0o666)
      await expect(find({ method })).rejects.toMatchObject({
        code: 'FILE_UNTRUSTED',
        message: `${path} cannot be trusted: other users can write it (mode 0666)`,
        hint: `check its content, then: chmod go-w ${path}`,
      })
      expect(lab.requests).toEqual([])
    },
  )

  test('pins are checked as well', async () => {
    const method = await fromFile(lab.kubeconfig)
    await expect(find({ method, pins: [`sha256:${'0'.repeat(64)}`] })).rejects.toMatchObject({
      reason: 'pin-mismatch',
    })
  })

  test.each([
    ['no such file', { by: 'file', path: '/nonexistent/cluster.yaml' }, 'there is no such file'],
    ['a directory', { by: 'file', path: '/' }, 'directory'],
    ['an empty stream', fromStream(''), 'there is nothing in standard input'],
    ['a stream without end', fromStream('a'.repeat(1024 * 1024), 'b'), 'more than 1 MiB'],
  ] as const)('%s is told in its own words [DISC-R13]', async (_name, method, said) => {
    const finding = find({ method })
    await expect(finding).rejects.toMatchObject({ reason: 'document-unreadable' })
    await expect(finding).rejects.toThrow(said)
  })

  test('a file is read no further than a document can be long [DISC-R13]', async () => {
    const method = await fromFile('')
    await truncate(join(directory, 'cluster.yaml'), 2 ** 40)
    const finding = find({ method })
    await expect(finding).rejects.toMatchObject({ reason: 'document-unreadable' })
    await expect(finding).rejects.toThrow('more than 1 MiB')
  })

  test('bytes that are no text are refused', async () => {
    const path = join(directory, 'binary')
    await writeFile(path, Buffer.from([0xff, 0xfe, 0x00]))
    await expect(find({ method: { by: 'file', path } })).rejects.toThrow('no text in UTF-8')
  })

  test('a server that another CA vouches for is not trusted', async () => {
    lab.roots = (await labAuthority('other')).bundlePem
    const finding = find({ method: await fromFile(lab.kubeconfig) })
    await expect(finding).rejects.toMatchObject({ reason: 'server-not-trusted' })
    await expect(finding).rejects.toThrow('not signed by')
  })

  test("without a CA the system's roots vouch for the server [DISC-R5]", async () => {
    const text = lab.kubeconfig.replace(/ +certificate-authority-data: .*\n/, '')
    const systemRoots = () => Promise.resolve([lab.ca.bundlePem])
    const found = await find({ method: await fromFile(text) }, { systemRoots })
    expect(found).toMatchObject({ cluster: { server: lab.address }, pins: [] })
    expect(found.cluster.certificateAuthorityData).toBeUndefined()
    await expect(find({ method: await fromFile(text) })).rejects.toMatchObject({
      reason: 'server-not-trusted',
    })
  })
})

describe('by a URL', () => {
  let host: LabCluster
  const systemRoots = () => Promise.resolve([host.ca.bundlePem])
  const at = (path = '/cluster.yaml'): DiscoveryMethod => ({
    by: 'url',
    url: `${host.address}${path}`,
  })
  beforeEach(async () => {
    host = await LabCluster.open()
    host.bend = (answer) => {
      answer.status = 200
      answer.headers = { 'content-type': 'text/plain' }
      answer.body = lab.kubeconfig
    }
  })
  afterEach(() => host.close())

  test('ends as the piped form does [DISC-R16]', async () => {
    const piped: DiscoveryMethod = {
      by: 'stream',
      stream: Readable.from([lab.kubeconfig]),
      name: '-',
    }
    const [byUrl, byPipe] = [
      await find({ method: at() }, { systemRoots }),
      await find({ method: piped }),
    ]
    expect({ ...byUrl, proofs: [] }).toEqual({ ...byPipe, proofs: [] })
    expect(byUrl.proofs).toEqual(['system-roots'])
    expect(host.requests[0]?.authorization).toBeUndefined()
  })

  test('a host that the system does not trust is the end of it [DISC-R19]', async () => {
    const finding = find(
      { method: at(), timeoutMs: 60_000 },
      { systemRoots: () => Promise.resolve([]) },
    )
    await expect(finding).rejects.toMatchObject({ reason: 'server-not-trusted', mayPass: false })
    await expect(finding).rejects.toThrow('cannot prove who it is to this system')
    expect(lab.requests).toEqual([])
  })

  test.each([
    [403, false],
    [404, true],
    [503, true],
  ])('%d is named [DISC-R17]', async (status, mayPass) => {
    host.bend = (answer) => {
      answer.status = status
    }
    const finding = find({ method: at() }, { systemRoots })
    await expect(finding).rejects.toMatchObject({ reason: 'document-unreadable', mayPass })
    await expect(finding).rejects.toThrow(`answered ${status}`)
  })

  test.each([
    ['to https are followed', '/next', 1, /^found$/],
    ['five times', '/again', 5, /^found$/],
    ['but not six times', '/again', 6, /redirects more than 5 times/],
    ['nor to http', 'http://127.0.0.1/', 1, /no https URL/],
    ['nor with a password', 'https://a:b@127.0.0.1/', 1, /no https URL/],
  ])('redirects %s [DISC-R17]', async (_name, location, times, said) => {
    const serve = host.bend
    host.bend = (answer, request) => {
      if (host.requests.length > times) return serve(answer, request)
      answer.status = 302
      answer.headers['location'] = location
    }
    const outcome = await find({ method: at() }, { systemRoots }).then(
      () => 'found',
      (error: unknown) => (error instanceof Error ? error.message : ''),
    )
    expect(outcome).toMatch(said)
  })

  test('a document without end is refused [DISC-R17]', async () => {
    host.bend = (answer) => {
      answer.status = 200
      answer.body = Buffer.alloc(1024 * 1024 + 1)
    }
    await expect(find({ method: at() }, { systemRoots })).rejects.toThrow('more than')
  })
})
