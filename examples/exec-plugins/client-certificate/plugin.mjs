#!/usr/bin/env node
// Gives certificates of short life: plugin.mjs COMMAND [ARGUMENT...]
// The command prints a kubeconfig with a new client certificate, as `sallyport user create NAME --out -` does.
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { homedir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { openCredentialCache, readExecInfo, writeCredential } from 'sallyport/exec-plugin'
import { parseKubeconfig } from 'sallyport/kubeconfig'

const minuteMs = 60_000
const say = (text) => process.stderr.write(`client-certificate: ${text}\n`)

async function obtain(command, args) {
  const { stdout } = await promisify(execFile)(command, args)
  const [user] = (await parseKubeconfig(stdout, 'what the command printed')).users.values()
  const certificate = user?.clientCertificateData
  const key = user?.clientKeyData?.reveal()
  if (!certificate || !key) throw new Error('the command printed no client certificate')
  return {
    clientCertificateData: certificate,
    clientKeyData: key,
    // A little early, so that no connection begins with a certificate that ends while it is made.
    expiresAt: Date.parse(new X509Certificate(certificate).validTo) - minuteMs,
  }
}

try {
  const [command, ...args] = process.argv.slice(2)
  if (!command) throw new Error('usage: plugin.mjs COMMAND [ARGUMENT...]')
  const info = readExecInfo(process.env)
  const directory = join(homedir(), '.kube', 'cache', 'client-certificate')
  const cache = await openCredentialCache(directory, { onSkip: say })
  const key = JSON.stringify([command, args])
  await writeCredential(
    info,
    await cache.getOrObtain(key, () => obtain(command, args)),
    process.stdout,
  )
} catch (error) {
  // The text of a failed command could hold more than its last line should tell.
  say(error.code === undefined ? error.message : `the command failed (${error.code})`)
  process.exitCode = 1
}
