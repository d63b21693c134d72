import { expect, test } from 'vitest'
import { parseOptions } from '../options/index.ts'
import { readWorkload, workloadOptions } from './options.ts'

const shape = { command: 'x', summary: '', options: workloadOptions, examples: [] }

async function read(...argv: string[]) {
  const parsed = await parseOptions(
    { ...shape, arguments: [{ name: 'C', describe: '', repeatable: true }] },
    { argv: [...argv, '--', 'node', '--port', '1'], env: {}, readFile: async () => '' },
  )
  return readWorkload(parsed.values, parsed.positionals, 'default')
}

test('the defaults are those of a Pod', async () => {
  expect(await read()).toEqual({
    namespace: 'default',
    serviceAccount: 'default',
    ports: [],
    audiences: [],
    labels: {},
    tokenLifetimeMs: 3_600_000,
    leaseMs: 40_000,
    graceMs: 30_000,
    inCluster: true,
    command: ['node', '--port', '1'],
  })
})

test.each([
  ['vault', 'vault', 'vault'],
  ['https://sts.amazonaws.com/x?y=z', 'sts.amazonaws.com', 'https://sts.amazonaws.com/x?y=z'],
  ['aws=https://sts.amazonaws.com', 'aws', 'https://sts.amazonaws.com'],
  ['a=b=c', 'a', 'b=c'],
])('the audience %s goes into the file %s [ISS-W2]', async (text, file, audience) => {
  expect((await read('--audience', text)).audiences).toEqual([{ file, audience }])
})

test('ports may have names, labels may have anything', async () => {
  const found = await read('--port', '80,http=8080', '--label', 'a=b=c', '--service', 'web')
  expect(found).toMatchObject({
    service: 'web',
    ports: [{ port: 80 }, { name: 'http', port: 8080 }],
    labels: { a: 'b=c' },
  })
})

test.each([
  ['--audience token', 'must not go into the file token'],
  ['--audience namespace=x', 'must not go into the file namespace'],
  ['--audience ..data=x', 'needs a file name'],
  ['--audience ../x=y', 'needs a file name'],
  ['--audience vault=', 'must not be empty'],
  ['--audience a,a', 'two of --audience go into one file'],
  ['--port 0', 'must be a port'],
  ['--port 65536', 'must be a port'],
  ['--port Bad=80', 'must be a port'],
  ['--label x', 'must be KEY=VALUE'],
  ['--name Bad', 'lower-case'],
  ['--service web', '--service needs the --port'],
  ['--token-lifetime 1m', '--token-lifetime'],
  ['--pod-ip host', '--pod-ip'],
])('%s is refused', async (words, why) => {
  await expect(read(...words.split(' '))).rejects.toThrow(why)
})
