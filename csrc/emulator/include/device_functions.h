// Everything of it that device code uses is built in.
#pragma once
