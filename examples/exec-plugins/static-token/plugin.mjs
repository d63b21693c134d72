#!/usr/bin/env node
// Gives the token that is in a file: plugin.mjs FILE
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { readExecInfo, writeCredential } from 'sallyport/exec-plugin'

try {
  const [path] = process.argv.slice(2)
  if (!path) throw new Error('usage: plugin.mjs FILE')
  const info = readExecInfo(process.env)
  const token = (await readFile(path, 'utf8')).trim()
  await writeCredential(info, { token }, process.stdout)
} catch (error) {
  process.stderr.write(`static-token: ${error.message}\n`)
  process.exitCode = 1
}
