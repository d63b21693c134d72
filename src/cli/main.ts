#!/usr/bin/env node
import process from 'node:process'
import { commands } from './commands.ts'
import { processIo } from './io.ts'
import { runCommand } from './run-command.ts'

process.exitCode = await runCommand(commands, process.argv.slice(2), processIo())
