// Run by npm after an installation. For a developer, it generates what the tests need. A package that is installed from
// git (`npm install git+https://…`) is built here, because it has no dist.
import './embed.mjs';

// npm sets the variable for the clone that it packs. Other package managers do not, so for them the library is always
// built.
const isDevelopers =
  process.env._PACOTE_NO_PREPARE_ === undefined && /^npm\//.test(process.env.npm_config_user_agent ?? 'npm/');
if (!isDevelopers) await import('./build.mjs');
