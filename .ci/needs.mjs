// What a test script needs on the machine, and what it prints if that is missing.
import { spawnSync } from 'node:child_process';

/** Whether a program is installed, and succeeds with these arguments. */
export function has(program, ...args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Ends the script successfully, and prints that nothing was tested. @param lines of up to 77 characters */
export function skip(...lines) {
  const width = 79;
  const box = [
    `┌${'─'.repeat(width)}┐`,
    ...lines.map((line) => `│ ${line.padEnd(width - 2)} │`),
    `└${'─'.repeat(width)}┘`,
  ];
  console.log(`\n${box.join('\n')}\n`);
  process.exit(0);
}
