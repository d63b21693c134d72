import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Forgery,
  forgedToken,
  keyKinds,
  labCa,
  labLeaf,
  labSigner,
  sans,
} from '../../../src/addon/token/token-lab.suite.ts'
import {
  attribute,
  distinguishedName,
  type LabCertificate,
  labNow,
  named,
  usage,
} from '../../../src/pki/certificate-lab.suite.ts'
import { findProgram, type Peer, pathOrReason } from '../../support/peers.ts'

const page = readFileSync(new URL('../../../docs/features/guard.md', import.meta.url), 'utf8')
const blockOf = (language: string): string =>
  new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(page)?.[1] ?? ''

const goImports =
  'bufio crypto crypto/ecdsa crypto/ed25519 crypto/elliptic crypto/rsa crypto/sha256 crypto/x509 encoding/base64 ' +
  'encoding/json errors fmt math/big os slices strconv strings time'
const goMain = `package main

import (
${goImports.replaceAll(/\S+/g, '"$&"').replaceAll(' ', '\n')}
)

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	cas := x509.NewCertPool()
	cas.AppendCertsFromPEM(pem)
	now, _ := strconv.ParseInt(os.Args[2], 10, 64)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		user, err := UserOf(lines.Text(), cas, "kube-system/dashboard", time.Unix(now, 0))
		if err != nil {
			user = "refused"
		}
		fmt.Println(user)
	}
}

`
const pythonMain = `
import sys
ca = open(sys.argv[1], "rb").read()
for line in sys.stdin:
    try:
        print(user_of(line.strip(), ca, "kube-system/dashboard", int(sys.argv[2])))
    except Refused:
        print("refused")
`

function pythonWithCryptography(): Peer {
  const found = findProgram('python3')
  if ('missing' in found) return found
  const { status } = spawnSync(found.path, ['-c', 'from cryptography import x509'])
  return status === 0 ? found : { missing: 'python3 has no package cryptography' }
}

const go = pathOrReason(findProgram('go'))
const python = pathOrReason(pythonWithCryptography())

let directory: string
let ca: LabCertificate
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'guard-snippets-'))
  ca = await labCa()
  await writeFile(join(directory, 'ca.crt'), ca.certificate.toString())
  await writeFile(join(directory, 'go.mod'), 'module snippet\n\ngo 1.22\n')
  await writeFile(join(directory, 'main.go'), goMain + blockOf('go'))
  await writeFile(join(directory, 'verify.py'), blockOf('python') + pythonMain)
  if (go === undefined) return
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '' }
  execFileSync(go, ['build', '-o', 'verify', '.'], { cwd: directory, env })
})
afterAll(() => rm(directory, { recursive: true }))

const languages = [
  ['Go', go, () => ({ program: join(directory, 'verify'), args: [] })],
  ['Python', python, () => ({ program: python ?? '', args: [join(directory, 'verify.py')] })],
] as const

const nodesName = distinguishedName([attribute('O', 'system:nodes')], [attribute('CN', 'n1')])

/** Signers and what is forged on their behalf, and what must become of it. */
const tokens: readonly (readonly [
  name: string,
  order: Parameters<typeof labLeaf>[1],
  forgery: Forgery,
  expected: string,
])[] = [
  ['a good one', {}, {}, 'bob'],
  ['a name in another script', {}, { claims: { sub: '山田' } }, '山田'],
  ...keyKinds
    .filter(([alg]) => alg !== 'ES384')
    .map(([alg, key]) => [`one by ${alg}`, { key: key() }, {}, 'bob'] as const),
  ['of another Service', {}, { claims: { aud: ['kube-system/other'] } }, 'refused'],
  ['for several', {}, { claims: { aud: ['kube-system/dashboard', 'a/b'] } }, 'refused'],
  ['that has ended', {}, { claims: { exp: Math.floor(labNow / 1000) - 11 } }, 'refused'],
  ['for a year', {}, { claims: { exp: Math.floor(labNow / 1000) + 31_536_000 } }, 'refused'],
  ['of another type', {}, { header: { typ: 'JWT' } }, 'refused'],
  ['of another issuer', {}, { claims: { iss: 'https://idp' } }, 'refused'],
  ['with alg none', {}, { header: { alg: 'none' } }, 'refused'],
  ['with crit', {}, { header: { crit: ['x'] } }, 'refused'],
  ["by a user's certificate", { usages: [usage.clientAuth] }, {}, 'refused'],
  ["by a kubelet's certificate", { extensions: [sans('node-1')] }, {}, 'refused'],
  ['by a node that has the name', { subject: named('system:node:n1') }, {}, 'refused'],
  ['by one of the nodes', { subject: nodesName }, {}, 'refused'],
  ['by an expired certificate', { notAfter: labNow - 1000 }, {}, 'refused'],
  ['without certificates', {}, { header: { x5c: [] } }, 'refused'],
]

describe.each(languages)('the page in %s [ADDON-G7, ADDON-X13]', (_language, isHere, start) => {
  test.skipIf(!isHere)('believes and refuses what the guard does', async () => {
    const lines: string[] = []
    for (const [, order, forgery] of tokens)
      lines.push(forgedToken(labSigner(await labLeaf(ca, order)), forgery))
    const tampered = lines[0]?.replace(/\.[^.]*\./, (part) => `.${part.slice(1, -1)}A.`) ?? ''
    const foreign = forgedToken(labSigner(await labLeaf(await labCa())))
    const { program, args } = start()
    const all = [...lines, tampered, foreign, 'a.b.c', 'nothing']
    const said = execFileSync(
      program,
      [...args, join(directory, 'ca.crt'), String(Math.floor(labNow / 1000))],
      { input: `${all.join('\n')}\n`, encoding: 'utf8' },
    )
    const names = [...tokens.map(([name]) => name), 'tampered', 'foreign', 'junk', 'a word']
    const expected = [...tokens.map((row) => row[3]), ...Array<string>(4).fill('refused')]
    const seen = said
      .trim()
      .split('\n')
      .map((verdict, index) => [names[index], verdict])
    expect(seen).toEqual(names.map((name, index) => [name, expected[index]]))
  })
})
