// Writes the source files that are made of others: the scripts of Redis, and the page of the dashboard.
import './embed-lua.mjs';
import './embed-page.mjs';
